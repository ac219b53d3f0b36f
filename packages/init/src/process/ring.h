#ifndef SVC_RING_H
#define SVC_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * The latest output of one stream, at most `limit` bytes. Offsets count all bytes the stream ever produced. Memory grows
 * with the kept bytes and is released when all are dropped; all rings together take no more than RINGS_MAX, beyond the
 * first page of each.
 */
struct ring {
  uint8_t *bytes;
  size_t at, length, capacity, limit;
  uint64_t base; // offset of the first byte kept
  uint64_t sent; // offset of the first byte not yet sent in this attachment
};

static inline uint64_t ring_end(const struct ring *ring) { return ring->base + ring->length; }

/** Reads once from the descriptor, `most` bytes at most. -1 with EBUSY: the ring is full, or no memory (then length < limit). */
ssize_t ring_read(struct ring *, int fd, size_t most);
/** Drops all bytes below `offset`, which must not be above ring_end. */
void ring_forget(struct ring *, uint64_t offset);
/** The contiguous kept bytes from `offset` on; returns how many. `offset` is not below base or above ring_end. */
size_t ring_peek(const struct ring *, uint64_t offset, const uint8_t **bytes);
/** The contiguous unsent bytes; returns how many. */
size_t ring_unsent(const struct ring *, const uint8_t **bytes);
void ring_free(struct ring *);

#endif
