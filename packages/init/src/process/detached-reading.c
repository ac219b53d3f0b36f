#include "process/detached-reading.h"

#include <stdlib.h>

enum { PIECE = 64 * 1024 };

struct reading {
  struct session session;
  struct list in_detached;
  struct detached *detached;
  struct task pump;
  uint64_t next[2], until[2]; // `next` UINT64_MAX: not wanted; `until` counts only when not following
  bool is_following, is_left_behind;
};

static void on_room(struct session *);
static void on_gone(struct session *, enum conn_end);
static void pump(struct task *);

static const struct session_kind kind = {on_room, on_gone};

bool reading_start(struct detached *detached, struct conn *conn, uint32_t id, const uint64_t offsets[2], bool is_following) {
  if (!conn_take_slot(conn)) return false;
  struct reading *reading = calloc(1, sizeof *reading);
  if (!reading) return conn_give_slot(conn), false;
  reading->detached = detached;
  reading->is_following = is_following;
  for (int i = 0; i < 2; i++) {
    reading->next[i] = offsets[i];
    reading->until[i] = ring_end(&detached->rings[i]);
  }
  task_init(&reading->pump, pump);
  session_open(&reading->session, conn, id, &kind);
  list_append(&detached->readings, &reading->in_detached);
  task_queue(&reading->pump);
  return true;
}

static struct reading *reading_at(struct list *node) { return containing(node, struct reading, in_detached); }

void readings_wake(struct detached *detached) {
  for (struct list *node = detached->readings.next; node != &detached->readings; node = node->next) {
    task_queue(&reading_at(node)->pump);
  }
}

uint64_t readings_need(const struct detached *detached, int stream) {
  uint64_t least = ring_end(&detached->rings[stream]);
  for (struct list *node = detached->readings.next; node != &detached->readings; node = node->next) {
    const struct reading *reading = reading_at(node);
    if (!reading->is_left_behind && reading->next[stream] < least) least = reading->next[stream];
  }
  return least;
}

void readings_leave_behind(struct detached *detached) {
  for (struct list *node = detached->readings.next; node != &detached->readings; node = node->next) {
    struct reading *reading = reading_at(node);
    for (int i = 0; i < 2; i++) {
      const struct ring *ring = &detached->rings[i];
      reading->is_left_behind |= ring->length >= ring->limit && reading->next[i] <= ring->base;
    }
  }
}

static void destroy(struct reading *reading) {
  conn_give_slot(reading->session.conn);
  session_close(&reading->session);
  task_cancel(&reading->pump);
  list_remove(&reading->in_detached);
  free(reading);
}

void readings_end(struct detached *detached) {
  while (!list_is_empty(&detached->readings)) {
    struct reading *reading = reading_at(detached->readings.next);
    struct conn *conn = reading->session.conn;
    uint32_t id = reading->session.id;
    destroy(reading);
    conn_error(conn, id, "invalid_session", "the process was forgotten", NULL);
  }
}

static void on_room(struct session *session) { task_queue(&containing(session, struct reading, session)->pump); }

static void on_gone(struct session *session, enum conn_end end) {
  struct reading *reading = containing(session, struct reading, session);
  struct detached *detached = reading->detached;
  (void)end;
  destroy(reading);
  detached_taken(detached);
}

static void send_dropped(struct reading *reading, int stream, uint64_t to) {
  struct writer payload = writer_new();
  struct conn *conn = reading->session.conn;
  write_map(&payload, 3);
  write_text_pair(&payload, "stream", stream ? "stderr" : "stdout");
  write_uint_pair(&payload, "from", reading->next[stream]);
  write_uint_pair(&payload, "to", to);
  if (!conn_answer(conn, reading->session.id, 0, "svc.detached.dropped", &payload)) conn_end(conn, CONN_LOST);
  reading->next[stream] = to;
}

/** Sends one piece of a stream. True: there is more. */
static bool send_piece(struct reading *reading, int stream) {
  const struct ring *ring = &reading->detached->rings[stream];
  uint64_t *next = &reading->next[stream], end = reading->is_following ? ring_end(ring) : reading->until[stream];
  const uint8_t *bytes;
  if (*next == UINT64_MAX || *next >= end) return false;
  if (*next < ring->base) {
    send_dropped(reading, stream, ring->base < end ? ring->base : end);
    reading->is_left_behind = false;
    return *next < end;
  }
  size_t length = ring_peek(ring, *next, &bytes);
  if (length > end - *next) length = (size_t)(end - *next);
  if (length > PIECE) length = PIECE;
  struct writer payload = writer_new();
  struct conn *conn = reading->session.conn;
  write_map(&payload, 3);
  write_text_pair(&payload, "stream", stream ? "stderr" : "stdout");
  write_uint_pair(&payload, "offset", *next);
  write_text(&payload, "data");
  write_bytes(&payload, bytes, length);
  if (!conn_answer(conn, reading->session.id, 0, "svc.detached.output", &payload)) return conn_end(conn, CONN_LOST), false;
  *next += length;
  return *next < end;
}

static void pump(struct task *task) {
  struct reading *reading = containing(task, struct reading, pump);
  struct detached *detached = reading->detached;
  struct conn *conn = reading->session.conn;
  bool has_more = false;
  for (int i = 0; i < 2; i++) {
    if (!conn_has_room(conn)) return; // on_room continues
    has_more |= send_piece(reading, i);
  }
  detached_taken(detached);
  if (has_more) return task_queue(task);
  if (reading->is_following && !detached->process.is_finished) return;
  struct writer payload = writer_new();
  uint32_t id = reading->session.id;
  detached_write_state(&payload, detached);
  destroy(reading);
  if (!conn_answer(conn, id, FLAG_TERMINAL, "svc.detached.end", &payload)) conn_end(conn, CONN_LOST);
}
