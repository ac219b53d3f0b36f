#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "limits.h"

enum { SMALLEST = 4096 };

ssize_t ring_read(struct ring *ring, int fd) {
  if (ring->length == DURABLE_RING) return errno = EBUSY, -1;
  if (ring->at && ring->at + ring->length == ring->capacity) {
    memmove(ring->bytes, ring->bytes + ring->at, ring->length);
    ring->at = 0;
  }
  if (ring->at + ring->length == ring->capacity) {
    size_t capacity = ring->capacity ? ring->capacity * 2 : SMALLEST;
    uint8_t *grown = realloc(ring->bytes, capacity);
    if (!grown) return errno = EBUSY, -1;
    ring->bytes = grown;
    ring->capacity = capacity;
  }
  size_t end = ring->at + ring->length;
  ssize_t got = read(fd, ring->bytes + end, ring->capacity - end);
  if (got > 0) ring->length += (size_t)got;
  return got;
}

void ring_forget(struct ring *ring, uint64_t offset) {
  if (offset <= ring->base) return;
  size_t gone = (size_t)(offset - ring->base);
  ring->base = offset;
  ring->at += gone;
  ring->length -= gone;
  if (ring->sent < offset) ring->sent = offset;
  if (!ring->length) ring_free(ring);
}

size_t ring_unsent(const struct ring *ring, const uint8_t **bytes) {
  size_t skip = (size_t)(ring->sent - ring->base);
  *bytes = ring->bytes ? ring->bytes + ring->at + skip : NULL;
  return ring->length - skip;
}

void ring_free(struct ring *ring) {
  free(ring->bytes);
  ring->bytes = NULL;
  ring->at = ring->length = ring->capacity = 0;
}
