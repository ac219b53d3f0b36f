#include "process/detached-record.h"

#include <signal.h>
#include <string.h>

#include "process/process-state.h"

struct list detacheds = {&detacheds, &detacheds};
unsigned detached_count;
size_t detached_stdin_waiting;

static void request_gone(struct session *session, enum conn_end end) { (void)end, session_close(session); }
const struct session_kind detached_request = {NULL, request_gone};

void detached_answer(struct session *session, const char *type, struct writer *payload) {
  struct conn *conn = session->conn;
  uint32_t id = session->id;
  if (!conn) {
    if (payload) writer_free(payload);
    return;
  }
  session_close(session);
  if (!payload) conn_answer_empty(conn, id, FLAG_TERMINAL, type);
  else if (!conn_answer(conn, id, FLAG_TERMINAL, type, payload)) conn_end(conn, CONN_LOST);
}

void detached_refuse(struct session *session, const char *kind, const char *message) {
  struct conn *conn = session->conn;
  uint32_t id = session->id;
  if (!conn) return;
  session_close(session);
  conn_error(conn, id, kind, message, NULL);
}

bool detached_is_told(void) {
  for (struct list *node = detacheds.next; node != &detacheds; node = node->next) {
    struct detached *detached = containing(node, struct detached, all);
    if (detached->process.is_finished && !list_is_empty(&detached->readings)) return false;
  }
  return true;
}

void detached_taken(struct detached *detached) {
  if (!detached->is_held) return;
  detached->is_held = false;
  timer_stop(&detached->unread_timer);
  process_resume(&detached->process);
}

void detached_tell_start(struct detached *detached) {
  struct writer payload = writer_new();
  write_map(&payload, 2);
  write_uint_pair(&payload, "pid", (uint64_t)detached->process.pid);
  write_uint_pair(&payload, "started_at_ns", detached->process.started_ns);
  detached_answer(&detached->starting, "svc.detached.started", &payload);
}

static const char *reason_of(const struct detached *detached) {
  const struct process *process = &detached->process;
  int signal = process_signal_number(process);
  if (process->was_timed_out) return "timeout";
  if (detached->was_over_limit && signal == SIGKILL) return "output_limit";
  if (detached->by[0] && signal && signal == detached->by_signal) return "killed_by";
  if (detached->was_shut_down) return "shutdown";
  if (process->was_pids) return "pids";
  if (detached->was_disk_full && !process->was_oom) return "disk_full";
  return process_reason(process);
}

void detached_write_state(struct writer *payload, const struct detached *detached) {
  const char *reason = reason_of(detached);
  bool is_by = detached->process.is_finished && !strcmp(reason, "killed_by");
  process_state_write(payload, detached->key, &detached->process, reason, detached->rings, 3);
  write_text_pair(payload, "by", is_by ? detached->by : NULL);
  write_uint_pair(payload, "stdout_from", detached->rings[0].base);
  write_uint_pair(payload, "stderr_from", detached->rings[1].base);
}
