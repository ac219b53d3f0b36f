#include "dispatch/control.h"

#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "dispatch/shutdown.h"
#include "process/config.h"
#include "process/count.h"
#include "process/detached.h"
#include "process/durable.h"
#include "process/exec.h"
#include "process/process.h"
#include "process/shutdown-state.h"
#include "wire/activity.h"
#include "wire/control-link.h"

struct route {
  const char *type;
  void (*handle)(struct conn *, struct message *);
  uint8_t flags; // of the request
};

static void configure(struct conn *, struct message *);
static void dial_more(struct conn *, struct message *);
static void drop(struct conn *, struct message *);
static void killed_answer(struct conn *, struct message *);
static void failed_answer(struct conn *, struct message *);
static void shut_down(struct conn *, struct message *);
static void prepare(struct conn *, struct message *);
static void count(struct conn *, struct message *);

static const struct route routes[] = {
    {"svc.configure", configure, 0},
    {"svc.prepare", prepare, 0},
    {"svc.count", count, 0},
    {"svc.dial", dial_more, 0},
    {"svc.drop", drop, 0},
    {"svc.killed.answer", killed_answer, 0},
    {"svc.failed.answer", failed_answer, 0},
    {"svc.shutdown", shut_down, 0},
    {"svc.process.start", durable_start, 0},
    {"svc.process.attach", durable_attach, 0},
    {"svc.process.ack", durable_ack, 0},
};

static void on_message(struct conn *, struct message *);
static void on_malformed(struct conn *, uint32_t id);
static void on_room(struct conn *);
static void on_closed(struct conn *, enum conn_end);

static void on_opened(struct conn *);

static const struct conn_handler handler = {on_message, on_malformed, on_room, on_closed};
const struct dialled control_line = {&handler, on_opened};

static void on_opened(struct conn *conn) {
  struct writer payload = writer_new();
  control_set(conn);
  write_map(&payload, 7);
  write_text_pair(&payload, "version", SVC_VERSION);
  write_uint_pair(&payload, "generation", GENERATION);
  activity_write_times(&payload);
  write_bool_pair(&payload, "configured", config.is_set);
  write_text(&payload, "processes");
  durable_write_states(&payload);
  control_notify("svc.hello", &payload);
  activity_announce();
}

static void on_message(struct conn *conn, struct message *message) {
  char type[64] = "";
  if (message->type.length < sizeof type) memcpy(type, message->type.at, message->type.length);
  for (size_t i = 0; i < COUNT(routes); i++) {
    if (!span_is(message->type, routes[i].type)) continue;
    routes[i].handle(conn, message);
    if (message->payload.bad) conn_error(conn, message->id, "invalid_payload", "the payload is malformed", type);
    return;
  }
  conn_error(conn, message->id, "unsupported_message_type", "this message type is not served here", type);
}

static void on_malformed(struct conn *conn, uint32_t id) {
  conn_error(conn, id, "malformed_message", "the frame holds no message", NULL);
}

static void on_room(struct conn *conn) {
  (void)conn;
  durable_room();
}

static void on_closed(struct conn *conn, enum conn_end end) {
  (void)end;
  if (control() == conn) control_set(NULL);
  durable_detach_all();
  dial_control_closed();
}

/** Reads a payload of one unsigned number. False: it was malformed, and the message is marked so. */
static bool read_number(struct message *message, const char *key, uint64_t *value) {
  const struct field field = {key, field_uint, 0, true};
  struct arena none = {0};
  bool ok = read_fields(&message->payload, &none, &field, 1, value);
  if (!ok) message->payload.bad = true;
  return ok;
}

static void configure(struct conn *conn, struct message *message) {
  char problem[256];
  if (config_replace(&message->payload, problem, sizeof problem)) {
    detached_end_spares();
    return conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.configured");
  }
  message->payload.bad = false;
  conn_error(conn, message->id, "invalid_payload", problem, "svc.configure");
}

static void dial_more(struct conn *conn, struct message *message) {
  uint64_t count = 0;
  (void)conn;
  if (read_number(message, "count", &count)) dial_sessions(count);
}

static void drop(struct conn *conn, struct message *message) {
  uint64_t number = 0;
  (void)conn;
  if (!read_number(message, "connection", &number) || number > UINT32_MAX) return;
  struct conn *client = dial_find((uint32_t)number);
  if (client) conn_end(client, CONN_LEFT);
  exec_drop((uint32_t)number);
}

/** Reads a payload of one boolean. False when it is malformed: the request then gets no answer. */
static bool read_truth(struct message *message, const char *key, bool *value) {
  const struct field field = {key, field_bool, 0, true};
  struct arena none = {0};
  return read_fields(&message->payload, &none, &field, 1, value);
}

static void killed_answer(struct conn *conn, struct message *message) {
  bool is_oom = false;
  (void)conn;
  if (read_truth(message, "oom", &is_oom)) process_explained(message->id, is_oom, false);
}

static void failed_answer(struct conn *conn, struct message *message) {
  bool is_pids = false;
  (void)conn;
  if (read_truth(message, "pids", &is_pids)) process_explained(message->id, false, is_pids);
}

static void shut_down(struct conn *conn, struct message *message) {
  struct order {
    uint64_t grace_ms;
    char *reason;
  } order = {.grace_ms = SHUTDOWN_GRACE_MS};
  static const struct field fields[] = {
      FIELD(struct order, grace_ms, field_uint, true),
      FIELD(struct order, reason, field_string, false),
  };
  struct arena arena = {0};
  (void)conn;
  bool ok = read_fields(&message->payload, &arena, fields, COUNT(fields), &order);
  if (ok && order.reason) shutdown_explain(order.reason);
  if (ok) shutdown_begin(order.grace_ms);
  else message->payload.bad = true;
  arena_free(&arena);
}

static void prepare(struct conn *conn, struct message *message) {
  char problem[256];
  if (config_prepare(problem, sizeof problem)) return conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.prepared");
  conn_error(conn, message->id, "invalid_payload", problem, "svc.prepare");
}

static void count(struct conn *conn, struct message *message) {
  struct writer payload = writer_new();
  write_map(&payload, 2);
  write_uint_pair(&payload, "processes", count_processes());
  write_uint_pair(&payload, "spares", detached_count_spares());
  if (!conn_answer(conn, message->id, FLAG_TERMINAL, "svc.counted", &payload)) conn_end(conn, CONN_LOST);
}
