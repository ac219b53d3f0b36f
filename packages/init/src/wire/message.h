#ifndef SVC_MESSAGE_H
#define SVC_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cbor-read.h"

// len u32 | id u32 | flags u8 | CBOR {v, t, p}
enum { FLAG_TERMINAL = 1, FLAG_SESSION_START = 2, FLAG_SHUTDOWN = 4 };
enum { FRAME_HEAD = 9, ENVELOPE_MAX = 96 };

struct message {
  uint32_t id;
  uint8_t flags;
  uint64_t generation;
  struct span type;
  struct reader payload;
};

/** Reads the body of one frame. False when it is no envelope; id and flags are set in any case. */
bool message_read(struct message *, uint8_t *frame, size_t length);

/** Reads the payload {data: bytes}. False: it was malformed, and the message is marked so. */
bool message_data(struct message *, struct span *data);

/**
 * Writes frame head and envelope for a payload of `length` bytes so that they END at `end`, and returns their start.
 * ENVELOPE_MAX bytes before `end` must be writable. With `is_data` the payload is the map {data: bytes(length)}.
 */
uint8_t *message_head(uint8_t *end, uint32_t id, uint8_t flags, const char *type, size_t length, bool is_data);

/** The flags a message type must carry. They are a function of the type; control answers are TERMINAL by id. */
uint8_t flags_of(const char *type);

static inline uint32_t get_u32(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static inline void put_u32(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 24), at[1] = (uint8_t)(value >> 16), at[2] = (uint8_t)(value >> 8), at[3] = (uint8_t)value;
}

#endif
