#include "wire/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bounds.h"

enum { IN_CHUNK = 64 * 1024, COALESCE = 8 * 1024 };

static struct list dirty = {&dirty, &dirty};
static struct list all = {&all, &all};

static void on_ready(struct watch *, uint32_t events);
static void on_resume(struct task *);
static void handle_frames(struct conn *);
static void receive(struct conn *);
static bool reserve_input(struct conn *);
static void transmit(struct conn *, const struct iovec *extra);
static void keep(struct conn *, const uint8_t *bytes, size_t length);
static void want(struct conn *);
static void destroy(struct conn *);

static void mark(struct conn *conn) {
  if (list_is_empty(&conn->dirty)) list_append(&dirty, &conn->dirty);
}

struct conn *conn_new(int fd, uint32_t number, const struct conn_handler *handler) {
  struct conn *conn = calloc(1, sizeof *conn);
  if (!conn || !watch_add(&conn->watch, fd, EPOLLIN, on_ready)) {
    free(conn);
    close(fd);
    return NULL;
  }
  conn->number = number;
  conn->handler = handler;
  task_init(&conn->resume, on_resume);
  list_init(&conn->dirty);
  list_append(&all, &conn->all);
  list_init(&conn->sessions);
  list_init(&conn->handles);
  int wanted = 512 * 1024; // the kernel clamps it to what this host allows
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
  return conn;
}

void conn_end(struct conn *conn, enum conn_end end) {
  if (conn->is_ending && conn->end == CONN_LEFT) return;
  conn->is_ending = true;
  conn->end = end;
  mark(conn);
}

size_t conn_waiting(const struct conn *conn) { return conn->out_length - conn->out_at; }

bool conn_has_room(struct conn *conn) {
  if (!conn->is_ending && conn_waiting(conn) < OUT_SOURCE_HIGH) return true;
  conn->is_starved = true;
  return false;
}

void conn_send(struct conn *conn, const void *bytes, size_t length) {
  if (conn->is_ending) return;
  // Small frames of one turn are sent in one system call; large ones are not copied unless the socket is full.
  if (length < COALESCE) {
    keep(conn, bytes, length);
    return mark(conn);
  }
  struct iovec extra = {(void *)(uintptr_t)bytes, length};
  transmit(conn, &extra);
  want(conn);
}

void conn_send_data(struct conn *conn, uint32_t id, const char *type, uint8_t *data, size_t length) {
  uint8_t *start = message_head(data, id, 0, type, length, true);
  conn_send(conn, start, (size_t)(data - start) + length);
}

bool conn_answer(struct conn *conn, uint32_t id, uint8_t flags, const char *type, struct writer *payload) {
  bool ok = !payload->failed;
  if (ok) {
    uint8_t head[ENVELOPE_MAX];
    uint8_t *start = message_head(head + sizeof head, id, flags, type, payload->length, false);
    conn_send(conn, start, (size_t)(head + sizeof head - start));
    conn_send(conn, payload->at, payload->length);
  }
  writer_free(payload);
  return ok;
}

void conn_answer_empty(struct conn *conn, uint32_t id, uint8_t flags, const char *type) {
  struct writer payload = writer_new();
  write_map(&payload, 0);
  if (!conn_answer(conn, id, flags, type, &payload)) conn_end(conn, CONN_LOST);
}

void conn_error(struct conn *conn, uint32_t id, const char *kind, const char *message, const char *offending_type) {
  struct writer payload = writer_new();
  write_map(&payload, 3);
  write_text_pair(&payload, "kind", kind);
  write_text_pair(&payload, "message", message);
  write_text_pair(&payload, "offending_type", offending_type);
  if (!conn_answer(conn, id, FLAG_TERMINAL, "core.error", &payload)) conn_end(conn, CONN_LOST);
}

void conn_taken(struct conn *conn, size_t bytes) {
  conn->untaken -= bytes < conn->untaken ? bytes : conn->untaken;
  task_queue(&conn->resume);
}

void conn_set_busy(struct conn *conn, bool is_busy) {
  conn->is_busy = is_busy;
  if (!is_busy) task_queue(&conn->resume);
}

void conns_settle(void) {
  while (!list_is_empty(&dirty)) {
    struct conn *conn = containing(dirty.next, struct conn, dirty);
    list_remove(&conn->dirty);
    if (!conn->is_ending && conn_waiting(conn)) {
      transmit(conn, NULL);
      want(conn);
    }
    if (conn->is_ending) destroy(conn);
  }
}

bool conns_are_flushed(void) {
  for (struct list *node = all.next; node != &all; node = node->next) {
    if (conn_waiting(containing(node, struct conn, all))) return false;
  }
  return true;
}

void conns_end_all(void) {
  for (struct list *node = all.next; node != &all; node = node->next) conn_end(containing(node, struct conn, all), CONN_LOST);
  conns_settle();
}

static void on_ready(struct watch *watch, uint32_t events) {
  struct conn *conn = containing(watch, struct conn, watch);
  if (conn->is_ending) return;
  if (events & EPOLLOUT) transmit(conn, NULL);
  if (events & EPOLLIN) receive(conn);
  else if (events & (EPOLLHUP | EPOLLERR)) conn_end(conn, CONN_LOST);
  want(conn);
}

static void on_resume(struct task *task) {
  struct conn *conn = containing(task, struct conn, resume);
  if (conn->is_ending) return;
  handle_frames(conn);
  want(conn);
}

/** Length of the first frame with its length word, 0 while it is incomplete or must not be handled yet. */
static size_t next_frame(struct conn *conn) {
  size_t have = conn->in_length - conn->in_at;
  if (conn->is_ending || have < 4) return 0;
  size_t length = get_u32(conn->in + conn->in_at);
  if (length < FRAME_MIN || length > FRAME_MAX) {
    conn_end(conn, CONN_LEFT);
    return 0;
  }
  return have >= length + 4 ? length + 4 : 0;
}

static bool may_handle(const struct conn *conn, size_t frame) {
  if (conn->is_busy || conn_waiting(conn) >= OUT_HARD) return false;
  return conn->untaken < IN_SOFT || (frame <= IN_SMALL_FRAME && conn->extra + frame <= IN_EXTRA);
}

static void handle_frames(struct conn *conn) {
  size_t frame;
  while ((frame = next_frame(conn)) && may_handle(conn, frame)) {
    struct message message;
    uint8_t *body = conn->in + conn->in_at + 4;
    conn->in_at += frame;
    conn->extra = conn->untaken < IN_SOFT ? 0 : conn->extra + frame;
    if (message_read(&message, body, frame - 4)) conn->handler->message(conn, &message);
    else conn->handler->malformed(conn, message.id);
  }
  if (conn->in_at == conn->in_length) {
    free(conn->in);
    conn->in = NULL;
    conn->in_at = conn->in_length = conn->in_capacity = 0;
  }
}

static void receive(struct conn *conn) {
  if (!reserve_input(conn)) return;
  ssize_t got = recv(conn->watch.fd, conn->in + conn->in_length, conn->in_capacity - conn->in_length, 0);
  if (got > 0) {
    conn->in_length += (size_t)got;
    handle_frames(conn);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    conn_end(conn, CONN_LOST);
  }
}

/** Makes room for the rest of the current frame, and for one chunk at least. False: no read is possible now. */
static bool reserve_input(struct conn *conn) {
  if (conn->in_at) {
    memmove(conn->in, conn->in + conn->in_at, conn->in_length - conn->in_at);
    conn->in_length -= conn->in_at;
    conn->in_at = 0;
  }
  size_t needed = IN_CHUNK;
  if (conn->in_length >= 4) {
    size_t frame = (size_t)get_u32(conn->in) + 4; // checked by next_frame when it arrived
    if (frame <= conn->in_length) return false;   // held back: no read behind it
    // Grows with the received bytes, so that an announced length alone allocates nothing.
    if (frame > needed) needed = frame < 2 * conn->in_length + IN_CHUNK ? frame : 2 * conn->in_length + IN_CHUNK;
  }
  if (needed <= conn->in_capacity) return true;
  uint8_t *grown = realloc(conn->in, needed);
  if (!grown) return conn_end(conn, CONN_LOST), false;
  conn->in = grown;
  conn->in_capacity = needed;
  return true;
}

/** Writes the queue and then `extra`; keeps the bytes that the socket does not take. */
static void transmit(struct conn *conn, const struct iovec *extra) {
  struct iovec parts[2] = {{conn->out + conn->out_at, conn_waiting(conn)}, {NULL, 0}};
  if (extra) parts[1] = *extra;
  int first = parts[0].iov_len ? 0 : 1, count = (extra ? 2 : 1) - first;
  if (count <= 0) return;
  struct msghdr header = {.msg_iov = parts + first, .msg_iovlen = (size_t)count};
  ssize_t sent = sendmsg(conn->watch.fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return conn_end(conn, CONN_LOST);
  size_t done = sent < 0 ? 0 : (size_t)sent, old = parts[0].iov_len;
  conn->out_at += done < old ? done : old;
  size_t done_extra = done < old ? 0 : done - old;
  if (conn->out_at == conn->out_length) {
    free(conn->out);
    conn->out = NULL;
    conn->out_at = conn->out_length = conn->out_capacity = 0;
  }
  if (extra && done_extra < extra->iov_len) {
    keep(conn, (const uint8_t *)extra->iov_base + done_extra, extra->iov_len - done_extra);
  }
  if (conn_waiting(conn) > OUT_SOURCE_LOW || conn->is_ending) return;
  if (conn->is_starved) {
    conn->is_starved = false;
    conn->handler->room(conn);
  }
  if (conn->in_length) task_queue(&conn->resume);
}

static void keep(struct conn *conn, const uint8_t *bytes, size_t length) {
  if (conn->out_at && conn->out_length + length > conn->out_capacity) {
    memmove(conn->out, conn->out + conn->out_at, conn_waiting(conn));
    conn->out_length -= conn->out_at;
    conn->out_at = 0;
  }
  if (conn->out_length + length > conn->out_capacity) {
    size_t capacity = conn->out_capacity ? conn->out_capacity : 1024;
    while (capacity < conn->out_length + length) capacity *= 2;
    uint8_t *grown = realloc(conn->out, capacity);
    // Without memory for an answer the stream would lose a piece, so the connection is ended.
    if (!grown) return conn_end(conn, CONN_LOST);
    conn->out = grown;
    conn->out_capacity = capacity;
  }
  memcpy(conn->out + conn->out_length, bytes, length);
  conn->out_length += length;
}

static void want(struct conn *conn) {
  size_t frame = next_frame(conn);
  bool is_held = frame && !may_handle(conn, frame);
  uint32_t events = is_held ? (uint32_t)(EPOLLHUP | EPOLLERR) : (uint32_t)EPOLLIN;
  // Messages of this turn are sent at its end.
  if (conn_waiting(conn) && list_is_empty(&conn->dirty)) events |= EPOLLOUT;
  if (!conn->is_ending) watch_want(&conn->watch, events);
}

static void destroy(struct conn *conn) {
  watch_close(&conn->watch);
  conn->handler->closed(conn, conn->end);
  task_cancel(&conn->resume);
  list_remove(&conn->dirty);
  list_remove(&conn->all);
  free(conn->in);
  free(conn->out);
  free(conn);
}
