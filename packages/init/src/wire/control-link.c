#include "wire/control-link.h"

static struct conn *current;
static uint32_t last_question;

struct conn *control(void) { return current; }
void control_set(struct conn *conn) { current = conn; }

void control_notify(const char *type, struct writer *payload) {
  if (!current) return writer_free(payload);
  if (!conn_answer(current, 0, 0, type, payload)) conn_end(current, CONN_LOST);
}

uint32_t control_ask(const char *type, pid_t pid) {
  if (!current || current->is_ending) return 0;
  struct writer payload = writer_new();
  if (++last_question == 0) last_question = 1;
  write_map(&payload, 1);
  write_uint_pair(&payload, "pid", (uint64_t)pid);
  return conn_answer(current, last_question, 0, type, &payload) ? last_question : 0;
}
