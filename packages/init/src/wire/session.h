#ifndef SVC_SESSION_H
#define SVC_SESSION_H

#include "wire/conn.h"

/**
 * One id on one connection: a process, a TCP stream, a file stream or a long file operation. Embedded in the struct of
 * its kind. It exists from the request until its TERMINAL answer.
 */
struct session {
  struct list in_conn;
  struct session *next;
  struct conn *conn;
  uint32_t id;
  const struct session_kind *kind;
};

struct session_kind {
  /** The peer has room for output again. */
  void (*room)(struct session *);
  /** The connection has ended. Ends and frees the session. */
  void (*gone)(struct session *, enum conn_end);
};

void session_open(struct session *, struct conn *, uint32_t id, const struct session_kind *);
void session_close(struct session *);
/** The session with this id when it is of this kind, else NULL. */
struct session *session_find(struct conn *, uint32_t id, const struct session_kind *);

/** Counts against HANDLES_MAX of the connection; false at the limit. */
bool conn_take_slot(struct conn *);
void conn_give_slot(struct conn *);

/** Called by handlers of connections with sessions: the peer has room; the connection has ended. */
void sessions_have_room(struct conn *);
void sessions_end(struct conn *, enum conn_end);

/** A large buffer for one read; valid until the next call that may read. ENVELOPE_MAX bytes before it are writable. */
uint8_t *scratch(void);
enum { SCRATCH_BYTES = 256 * 1024 };

#endif
