#ifndef SVC_SINK_H
#define SVC_SINK_H

#include "loop/loop.h"

/**
 * A write queue for a pipe, a terminal or a socket that may be slow. Bytes that the kernel does not take at once are
 * kept, in order. The owner of the sink bounds their number.
 */
struct sink {
  struct watch watch; // fd -1: closed
  struct list chunks;
  bool is_ending;
  const struct sink_owner *owner;
};

/** Callbacks that the owner does not need are NULL. */
struct sink_owner {
  /** `bytes` left the sink; `is_last` when they complete the write tagged `tag`. Also called for bytes discarded by a close. */
  void (*taken)(struct sink *, size_t bytes, uint32_t tag, bool is_last);
  /** The other side has closed. The sink is closed and empty already. */
  void (*broken)(struct sink *, int error);
  /** All earlier bytes were taken; now end: close, or shut down half of a socket. */
  void (*ended)(struct sink *);
};

/** Takes the descriptor (-1: a closed sink). False when it cannot be watched; it is closed then. */
bool sink_open(struct sink *, int fd, const struct sink_owner *);
/** False when memory ran out: nothing was kept. A closed sink counts the bytes as taken. */
bool sink_write(struct sink *, const uint8_t *bytes, size_t length, uint32_t tag);
void sink_end(struct sink *);
/** Discards queued bytes, reports them as taken, and closes the descriptor. */
void sink_close(struct sink *);
bool sink_is_open(const struct sink *);

#endif
