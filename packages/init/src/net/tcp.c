#include "net/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bounds.h"
#include "loop/descriptors.h"
#include "loop/sink.h"
#include "net/resolve.h"
#include "wire/activity.h"
#include "wire/session.h"

struct stream {
  struct session session;
  struct resolution resolution;
  struct timer timeout;
  struct address addresses[ADDRESSES_MAX];
  size_t address_count, tried;
  struct watch socket; // connecting, then read from
  struct sink out;     // written to, through a second descriptor of the same socket
  bool is_resolving, is_connected, has_read_all, has_written_all;
};

static void on_resolved(struct resolution *, const struct address *, size_t count);
static void try_next(struct stream *, int last_error);
static void on_connecting(struct watch *, uint32_t events);
static void on_readable(struct watch *, uint32_t events);
static void on_timeout(struct timer *);
static void on_room(struct session *);
static void on_gone(struct session *, enum conn_end);
static void out_taken(struct sink *, size_t bytes, uint32_t tag, bool is_last);
static void out_broken(struct sink *, int error);
static void out_ended(struct sink *);
static void finish_if_done(struct stream *);
static void fail(struct stream *, const char *message);
static void destroy(struct stream *);

static const struct session_kind kind = {on_room, on_gone};
static const struct sink_owner out_owner = {out_taken, out_broken, out_ended};

static void send_failed(struct conn *conn, uint32_t id, const char *message) {
  struct writer payload = writer_new();
  write_map(&payload, 1);
  write_text_pair(&payload, "error", message);
  activity();
  if (!conn_answer(conn, id, FLAG_TERMINAL, "core.tcp.failed", &payload)) conn_end(conn, CONN_LOST);
}

void tcp_connect(struct conn *conn, struct message *message) {
  struct target {
    char *host;
    uint64_t port;
  } target = {0};
  static const struct field fields[] = {FIELD(struct target, host, field_string, true),
                                        FIELD(struct target, port, field_uint, true)};
  struct arena arena = {0};
  if (session_find(conn, message->id, NULL)) return conn_error(conn, message->id, "invalid_session", "this id is in use", NULL);
  bool ok = read_fields(&message->payload, &arena, fields, COUNT(fields), &target) && target.port >= 1 && target.port <= UINT16_MAX;
  struct stream *stream = ok ? calloc(1, sizeof *stream) : NULL;
  bool has_slot = stream && conn_take_slot(conn);
  if (!ok) message->payload.bad = true;
  else if (!has_slot) send_failed(conn, message->id, "too many handles and streams are open; close some first");
  if (!has_slot) {
    free(stream);
    return arena_free(&arena);
  }
  session_open(&stream->session, conn, message->id, &kind);
  activity_count.streams++;
  stream->socket.fd = stream->resolution.pipe.fd = -1;
  sink_open(&stream->out, -1, &out_owner);
  timer_init(&stream->timeout, on_timeout);
  timer_start(&stream->timeout, TCP_CONNECT_MS);
  uint16_t port = (uint16_t)target.port;
  stream->address_count = resolve_literal(target.host, port, stream->addresses);
  if (stream->address_count) try_next(stream, 0);
  else if (resolve_start(&stream->resolution, target.host, port, on_resolved)) stream->is_resolving = true;
  else fail(stream, "cannot start a name lookup: out of resources");
  arena_free(&arena);
}

static struct stream *find(struct conn *conn, uint32_t id) {
  struct session *session = session_find(conn, id, &kind);
  return session ? containing(session, struct stream, session) : NULL;
}

void tcp_data(struct conn *conn, struct message *message) {
  struct span data = {0};
  if (!message_data(message, &data)) return;
  struct stream *stream = find(conn, message->id);
  if (!stream || !stream->is_connected) return send_failed(conn, message->id, "unknown TCP session");
  if (stream->out.is_ending || !data.length) return;
  conn->untaken += data.length;
  if (sink_write(&stream->out, data.at, data.length, 0)) return;
  conn_taken(conn, data.length);
  fail(stream, "out of memory");
}

void tcp_eof(struct conn *conn, struct message *message) {
  struct stream *stream = find(conn, message->id);
  if (stream && stream->is_connected) sink_end(&stream->out);
}

void tcp_close(struct conn *conn, struct message *message) {
  struct stream *stream = find(conn, message->id);
  if (stream) destroy(stream);
}

static void on_resolved(struct resolution *resolution, const struct address *addresses, size_t count) {
  struct stream *stream = containing(resolution, struct stream, resolution);
  stream->is_resolving = false;
  if (!count) return fail(stream, "the name could not be resolved inside the sandbox");
  memcpy(stream->addresses, addresses, count * sizeof *addresses);
  stream->address_count = count;
  try_next(stream, 0);
}

/** Connects to the next address; after the last one fails with the latest reason. */
static void try_next(struct stream *stream, int last_error) {
  while (stream->tried < stream->address_count) {
    const struct address *address = &stream->addresses[stream->tried++];
    int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || is_reserved_fd(fd)) {
      last_error = fd < 0 ? errno : EMFILE;
    } else if (connect(fd, (const struct sockaddr *)&address->at, address->length) < 0 && errno != EINPROGRESS) {
      last_error = errno;
    } else if (watch_add(&stream->socket, fd, EPOLLOUT, on_connecting)) {
      return;
    } else {
      last_error = ENOMEM;
    }
    if (fd >= 0) close(fd);
  }
  fail(stream, strerror(last_error));
}

static void on_connecting(struct watch *watch, uint32_t events) {
  struct stream *stream = containing(watch, struct stream, socket);
  int error = 0;
  socklen_t length = sizeof error;
  (void)events;
  if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) error = errno;
  if (error) {
    watch_close(watch);
    return try_next(stream, error);
  }
  int fd = watch_release(watch), second = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  bool ok = second >= 0 && sink_open(&stream->out, second, &out_owner);
  if (!ok || !watch_add(watch, fd, EPOLLIN, on_readable)) {
    close(fd);
    return fail(stream, "out of resources");
  }
  timer_stop(&stream->timeout);
  stream->is_connected = true;
  activity();
  conn_answer_empty(stream->session.conn, stream->session.id, 0, "core.tcp.connected");
}

static void on_readable(struct watch *watch, uint32_t events) {
  struct stream *stream = containing(watch, struct stream, socket);
  struct session *session = &stream->session;
  (void)events;
  if (stream->has_read_all) return;
  if (!conn_has_room(session->conn)) return watch_want(watch, 0);
  ssize_t got = recv(watch->fd, scratch(), TCP_CHUNK, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return fail(stream, strerror(errno));
  activity();
  if (got > 0) return conn_send_data(session->conn, session->id, "core.tcp.data", scratch(), (size_t)got);
  stream->has_read_all = true;
  watch_want(watch, 0);
  conn_answer_empty(session->conn, session->id, 0, "core.tcp.eof");
  finish_if_done(stream);
}

static void on_timeout(struct timer *timer) { fail(containing(timer, struct stream, timeout), "connecting took more than 30 s"); }

static void on_room(struct session *session) {
  struct stream *stream = containing(session, struct stream, session);
  if (stream->is_connected && !stream->has_read_all) watch_want(&stream->socket, EPOLLIN);
}

static void on_gone(struct session *session, enum conn_end end) {
  (void)end;
  destroy(containing(session, struct stream, session));
}

static void out_taken(struct sink *sink, size_t bytes, uint32_t tag, bool is_last) {
  (void)tag, (void)is_last;
  conn_taken(containing(sink, struct stream, out)->session.conn, bytes);
}

static void out_broken(struct sink *sink, int error) { fail(containing(sink, struct stream, out), strerror(error)); }

static void out_ended(struct sink *sink) {
  struct stream *stream = containing(sink, struct stream, out);
  shutdown(sink->watch.fd, SHUT_WR);
  stream->has_written_all = true;
  finish_if_done(stream);
}

static void finish_if_done(struct stream *stream) {
  if (!stream->has_read_all || !stream->has_written_all) return;
  struct conn *conn = stream->session.conn;
  uint32_t id = stream->session.id;
  destroy(stream);
  conn_answer_empty(conn, id, FLAG_TERMINAL, "core.tcp.closed");
}

static void fail(struct stream *stream, const char *message) {
  struct conn *conn = stream->session.conn;
  uint32_t id = stream->session.id;
  destroy(stream);
  send_failed(conn, id, message);
}

static void destroy(struct stream *stream) {
  if (stream->is_resolving) resolve_cancel(&stream->resolution);
  timer_stop(&stream->timeout);
  watch_close(&stream->socket);
  sink_close(&stream->out);
  conn_give_slot(stream->session.conn);
  session_close(&stream->session);
  activity_count.streams--;
  free(stream);
}
