#include "process/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"

enum { SMALLEST = 4096 };

static size_t taken; // bytes of memory of all rings

/** Makes room for more bytes at the end. False: no memory. */
static bool grow(struct ring *ring) {
  size_t capacity = ring->capacity ? ring->capacity * 2 : SMALLEST;
  if (ring->capacity && taken + ring->capacity > RINGS_MAX) return false;
  uint8_t *grown = realloc(ring->bytes, capacity);
  if (!grown) return false;
  taken += capacity - ring->capacity;
  ring->bytes = grown;
  ring->capacity = capacity;
  return true;
}

ssize_t ring_read(struct ring *ring, int fd, size_t most) {
  if (ring->length >= ring->limit) return errno = EBUSY, -1;
  if (ring->at && ring->at + ring->length == ring->capacity) {
    memmove(ring->bytes, ring->bytes + ring->at, ring->length);
    ring->at = 0;
  }
  if (ring->at + ring->length == ring->capacity && !grow(ring)) return errno = EBUSY, -1;
  size_t end = ring->at + ring->length, room = ring->capacity - end, left = ring->limit - ring->length;
  if (room > left) room = left;
  ssize_t got = read(fd, ring->bytes + end, room < most ? room : most);
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

size_t ring_peek(const struct ring *ring, uint64_t offset, const uint8_t **bytes) {
  size_t skip = (size_t)(offset - ring->base);
  *bytes = ring->bytes ? ring->bytes + ring->at + skip : NULL;
  return ring->length - skip;
}

size_t ring_unsent(const struct ring *ring, const uint8_t **bytes) { return ring_peek(ring, ring->sent, bytes); }

void ring_free(struct ring *ring) {
  free(ring->bytes);
  taken -= ring->capacity;
  ring->bytes = NULL;
  ring->at = ring->length = ring->capacity = 0;
}
