#include "dispatch/channel.h"

#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "dispatch/shutdown.h"
#include "files/files.h"
#include "files/handles.h"
#include "net/tcp.h"
#include "net/udp.h"
#include "process/detached.h"
#include "process/exec.h"
#include "watch/file-watch.h"
#include "wire/activity.h"
#include "wire/session.h"

struct route {
  const char *type;
  void (*handle)(struct conn *, struct message *);
  bool is_file_work, is_activity;
};

static void ping(struct conn *, struct message *);
static void touch(struct conn *, struct message *);
static void shut_down(struct conn *, struct message *);

static const struct route routes[] = {
    {"core.exec.request", exec_request, false, true},
    {"core.exec.stdin", exec_stdin, false, true},
    {"core.exec.signal", exec_signal, false, true},
    {"core.exec.resize", exec_resize, false, true},
    {"core.fs.request", files_request, true, true},
    {"core.fs.data", files_data, true, true},
    {"core.tcp.connect", tcp_connect, false, true},
    {"core.tcp.data", tcp_data, false, true},
    {"core.tcp.eof", tcp_eof, false, true},
    {"core.tcp.close", tcp_close, false, true},
    {"core.ping", ping, true, false},
    {"core.touch", touch, true, false},
    {"core.shutdown", shut_down, false, true},
    {"svc.udp.open", udp_open, false, true},
    {"svc.udp.data", udp_data, false, true},
    {"svc.udp.close", udp_close, false, false},
    {"svc.detached.start", detached_start, false, true},
    {"svc.detached.list", detached_list, false, false},
    {"svc.detached.read", detached_read, false, false},
    {"svc.detached.stdin", detached_stdin, false, true},
    {"svc.detached.signal", detached_signal, false, true},
    {"svc.detached.resize", detached_resize, false, true},
    {"svc.detached.forget", detached_forget, false, true},
    {"svc.detached.recall", detached_recall, false, false},
    {"svc.detached.timeout", detached_timeout, false, false},
    {"svc.watch.start", file_watch_start, false, true},
    {"svc.watch.stop", file_watch_stop, false, true},
};

static void dispatch(struct conn *, struct message *, bool only_files);
static void on_message(struct conn *conn, struct message *message) { dispatch(conn, message, false); }
static void on_file_message(struct conn *conn, struct message *message) { dispatch(conn, message, true); }
static void on_malformed(struct conn *, uint32_t id);
static void on_closed(struct conn *, enum conn_end);
static void on_files_closed(struct conn *, enum conn_end);

static const struct conn_handler handler = {on_message, on_malformed, sessions_have_room, on_closed};
const struct dialled channel_line = {&handler, channel_greet};
const struct conn_handler channel_files_handler = {on_file_message, on_malformed, sessions_have_room, on_files_closed};

static bool is_valid_id(uint32_t id) { return id != 0 && id != UINT32_MAX; }

static void dispatch(struct conn *conn, struct message *message, bool only_files) {
  const struct route *route = NULL;
  char type[64] = "";
  for (size_t i = 0; i < COUNT(routes) && !route; i++) {
    if (span_is(message->type, routes[i].type) && (routes[i].is_file_work || !only_files)) route = &routes[i];
  }
  bool is_shutdown = message->id == 0 && route && route->handle == shut_down;
  if (!is_valid_id(message->id) && !is_shutdown) return conn_end(conn, CONN_LEFT);
  if (message->type.length < sizeof type) memcpy(type, message->type.at, message->type.length);
  if (!route) {
    return conn_error(conn, message->id, "unsupported_message_type", "this message type is not served here", type);
  }
  if (message->generation == 0) {
    return conn_error(conn, message->id, "unsupported_protocol_generation", "generations start at 1", type);
  }
  if (message->flags != flags_of(route->type)) {
    return conn_error(conn, message->id, "invalid_flags", "the flags do not fit the message type", type);
  }
  if (route->is_activity) activity();
  route->handle(conn, message);
  if (message->payload.bad) conn_error(conn, message->id, "invalid_payload", "the payload is malformed", type);
}

static void on_malformed(struct conn *conn, uint32_t id) {
  if (!is_valid_id(id)) return conn_end(conn, CONN_LEFT);
  conn_error(conn, id, "malformed_message", "the frame holds no message", NULL);
}

static void end_sessions(struct conn *conn, enum conn_end end) {
  sessions_end(conn, end);
  files_forget(conn);
}

static void on_closed(struct conn *conn, enum conn_end end) {
  end_sessions(conn, end);
  dial_session_closed(conn);
}

static void on_files_closed(struct conn *conn, enum conn_end end) {
  end_sessions(conn, end);
  exit(0); // the only connection of this program
}

static void ping(struct conn *conn, struct message *message) { conn_answer_empty(conn, message->id, FLAG_TERMINAL, "core.pong"); }

static void touch(struct conn *conn, struct message *message) {
  struct writer payload = writer_new();
  write_map(&payload, 1);
  write_uint_pair(&payload, "activity_seq", activity());
  if (!conn_answer(conn, message->id, FLAG_TERMINAL, "core.touched", &payload)) conn_end(conn, CONN_LOST);
}

static void shut_down(struct conn *conn, struct message *message) {
  (void)conn, (void)message;
  shutdown_begin(SHUTDOWN_GRACE_MS);
}

void channel_greet(struct conn *conn) {
  static const uint8_t range[8] = {0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff};
  struct writer payload = writer_new();
  conn_send(conn, range, sizeof range);
  write_map(&payload, 5);
  write_text_pair(&payload, "agent_version", SVC_VERSION);
  activity_write_times(&payload);
  // Extensions of the public protocol, by group, so that a client knows them before it uses them.
  static const char *const features[] = {"svc.detached", "svc.repeat", "svc.udp", "svc.watch"};
  size_t count = conn->handler == &channel_files_handler ? 0 : COUNT(features);
  write_text(&payload, "features");
  write_array(&payload, count);
  for (size_t i = 0; i < count; i++) write_text(&payload, features[i]);
  if (!conn_answer(conn, 0, 0, "core.ready", &payload)) conn_end(conn, CONN_LOST);
}
