#ifndef SVC_CBOR_WRITE_H
#define SVC_CBOR_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Writes definite-length, shortest-form CBOR. `failed` is sticky: no memory, or more than `max` bytes.
struct writer {
  uint8_t *at;
  size_t length, capacity, max;
  bool failed;
};

/** An empty writer for one answer of at most ANSWER_MAX bytes. Free it, or hand it to conn_answer. */
struct writer writer_new(void);
void writer_free(struct writer *);

void write_uint(struct writer *, uint64_t value);
void write_int(struct writer *, int64_t value);
void write_bool(struct writer *, bool value);
void write_null(struct writer *);
void write_bytes(struct writer *, const void *bytes, size_t length);
/** Invalid UTF-8 (file names may have any bytes) becomes U+FFFD, or the peer could not decode the frame. */
void write_text(struct writer *, const char *text);
/** Appends encoded items. */
void write_raw(struct writer *, const void *bytes, size_t length);
void write_array(struct writer *, size_t count);
void write_map(struct writer *, size_t pairs);

// One pair of a map.
void write_uint_pair(struct writer *, const char *key, uint64_t value);
void write_int_pair(struct writer *, const char *key, int64_t value);
void write_bool_pair(struct writer *, const char *key, bool value);
void write_text_pair(struct writer *, const char *key, const char *text_or_null);

/** Writes the head of an item with the given length to `out` (9 bytes at most) and returns its size. */
size_t put_head(uint8_t *out, uint8_t major, uint64_t value);
enum { CBOR_BYTES = 2, CBOR_TEXT = 3, CBOR_MAP = 5 };

#endif
