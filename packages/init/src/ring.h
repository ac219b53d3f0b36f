#ifndef SVC_RING_H
#define SVC_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * The output of one stream from the first byte nobody has acknowledged, at most DURABLE_RING bytes. Offsets count all
 * bytes the stream ever produced. Memory grows with what waits and is given back when all is acknowledged.
 */
struct ring {
  uint8_t *bytes;
  size_t at, length, capacity;
  uint64_t base; // offset of the first byte kept
  uint64_t sent; // offset of the first byte not yet sent in this attachment
};

static inline uint64_t ring_end(const struct ring *ring) { return ring->base + ring->length; }

/** Reads once from the descriptor. -1 with EBUSY: the ring is full, or there is no memory now. */
ssize_t ring_read(struct ring *, int fd);
/** Forgets everything below `offset`, which must not be above ring_end. */
void ring_forget(struct ring *, uint64_t offset);
/** The unsent bytes that lie together; returns how many. */
size_t ring_unsent(const struct ring *, const uint8_t **bytes);
void ring_free(struct ring *);

#endif
