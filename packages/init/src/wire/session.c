#include "wire/session.h"

#include "bounds.h"

enum { BUCKETS = 1024 };

static struct session *table[BUCKETS];

static struct session **bucket_of(const struct conn *conn, uint32_t id) { return &table[(conn->number * 31 + id) % BUCKETS]; }

void session_open(struct session *session, struct conn *conn, uint32_t id, const struct session_kind *kind) {
  struct session **bucket = bucket_of(conn, id);
  *session = (struct session){.next = *bucket, .conn = conn, .id = id, .kind = kind};
  *bucket = session;
  list_append(&conn->sessions, &session->in_conn);
}

void session_close(struct session *session) {
  struct session **link = bucket_of(session->conn, session->id);
  while (*link && *link != session) link = &(*link)->next;
  if (*link) *link = session->next;
  list_remove(&session->in_conn);
  session->conn = NULL;
}

struct session *session_find(struct conn *conn, uint32_t id, const struct session_kind *kind) {
  struct session *session = *bucket_of(conn, id);
  while (session && (session->conn != conn || session->id != id)) session = session->next;
  return session && (!kind || session->kind == kind) ? session : NULL;
}

bool conn_take_slot(struct conn *conn) {
  if (conn->session_count >= HANDLES_MAX) return false;
  conn->session_count++;
  return true;
}

void conn_give_slot(struct conn *conn) { conn->session_count--; }

void sessions_have_room(struct conn *conn) {
  for (struct list *node = conn->sessions.next, *next; node != &conn->sessions; node = next) {
    next = node->next;
    struct session *session = containing(node, struct session, in_conn);
    if (session->kind->room) session->kind->room(session);
  }
}

void sessions_end(struct conn *conn, enum conn_end end) {
  while (!list_is_empty(&conn->sessions)) {
    struct session *session = containing(conn->sessions.next, struct session, in_conn);
    session->kind->gone(session, end);
  }
}

uint8_t *scratch(void) {
  _Static_assert((int)SCRATCH_BYTES >= (int)OUTPUT_CHUNK && (int)SCRATCH_BYTES >= (int)TCP_CHUNK, "one read must fit");
  static uint8_t buffer[ENVELOPE_MAX + SCRATCH_BYTES];
  return buffer + ENVELOPE_MAX;
}
