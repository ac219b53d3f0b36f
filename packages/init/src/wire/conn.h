#ifndef SVC_CONN_H
#define SVC_CONN_H

#include "loop/loop.h"
#include "wire/cbor-write.h"
#include "wire/message.h"

enum conn_end {
  CONN_LOST, // EOF or reset: the engine may have died, processes keep running
  CONN_LEFT, // the client has left (svc.drop) or sent garbage: its processes are killed
};

struct conn;

struct conn_handler {
  void (*message)(struct conn *, struct message *);
  /** A frame whose envelope is malformed. */
  void (*malformed)(struct conn *, uint32_t id);
  /** The peer has read enough: sources may continue. */
  void (*room)(struct conn *);
  /** Last call. The socket is closed already. */
  void (*closed)(struct conn *, enum conn_end);
};

/**
 * One framed connection. Requests are handled in order; a frame is left unread while the connection is `busy`, while
 * the peer does not read its answers, or while its earlier data waits for slow readers (see bounds.h).
 */
struct conn {
  struct watch watch;
  struct task resume;
  struct list dirty; // in the list of connections to flush or end in this turn
  struct list all;
  const struct conn_handler *handler;
  uint32_t number;
  bool is_ending, is_busy, is_starved;
  enum conn_end end;
  uint8_t *in, *out;
  size_t in_at, in_length, in_capacity;
  size_t out_at, out_length, out_capacity;
  size_t untaken;         // bytes from the peer without a taker yet
  size_t extra;           // bytes of small frames handled above the limit
  struct list sessions;   // session.h
  struct list handles;    // files/handles.h
  unsigned session_count; // handles and streams, bounded by HANDLES_MAX
};

/** Takes the descriptor in any case. NULL when memory ran out. */
struct conn *conn_new(int fd, uint32_t number, const struct conn_handler *);
/** Ends the connection before the loop waits again; the struct stays valid until then. */
void conn_end(struct conn *, enum conn_end);

/** Bytes that a source may still queue; 0 means: wait for `room`. */
bool conn_has_room(struct conn *);
/** Sends raw bytes: at once when the queue is empty, else behind it. */
void conn_send(struct conn *, const void *bytes, size_t length);
/** Sends a data frame whose bytes are at `data`, with ENVELOPE_MAX writable bytes before them: no copy. */
void conn_send_data(struct conn *, uint32_t id, const char *type, uint8_t *data, size_t length);
/** Sends a frame and frees the writer. False when the writer failed: nothing was sent. */
bool conn_answer(struct conn *, uint32_t id, uint8_t flags, const char *type, struct writer *payload);
void conn_answer_empty(struct conn *, uint32_t id, uint8_t flags, const char *type);
void conn_error(struct conn *, uint32_t id, const char *kind, const char *message, const char *offending_type);

/** Changes `untaken`, and resumes reading when that unblocks the connection. */
void conn_taken(struct conn *, size_t bytes);
void conn_set_busy(struct conn *, bool is_busy);
size_t conn_waiting(const struct conn *); // bytes not yet taken by the peer

/** Flushes the output of this turn and ends connections that are to end. */
void conns_settle(void);
bool conns_are_flushed(void);
/** Before this program exits: releases everything that belongs to connections. */
void conns_end_all(void);

#endif
