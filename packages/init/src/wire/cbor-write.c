#include "wire/cbor-write.h"

#include <stdlib.h>
#include <string.h>

#include "bounds.h"

static void append(struct writer *, const void *bytes, size_t length);
static void append_head(struct writer *, uint8_t major, uint64_t value);
static size_t utf8_length(const uint8_t *at, size_t left);

struct writer writer_new(void) { return (struct writer){.max = ANSWER_MAX}; }

void writer_free(struct writer *writer) {
  free(writer->at);
  *writer = (struct writer){.max = writer->max};
}

void write_uint(struct writer *writer, uint64_t value) { append_head(writer, 0, value); }

void write_int(struct writer *writer, int64_t value) {
  if (value >= 0) append_head(writer, 0, (uint64_t)value);
  else append_head(writer, 1, ~(uint64_t)value);
}

void write_bool(struct writer *writer, bool value) { append(writer, value ? "\xf5" : "\xf4", 1); }
void write_null(struct writer *writer) { append(writer, "\xf6", 1); }

void write_bytes(struct writer *writer, const void *bytes, size_t length) {
  append_head(writer, CBOR_BYTES, length);
  append(writer, bytes, length);
}

void write_text(struct writer *writer, const char *text) {
  const uint8_t *at = (const uint8_t *)text;
  size_t left = strlen(text), length = 0;
  for (size_t i = 0, step; i < left; i += step ? step : 1, length += step ? step : 3) step = utf8_length(at + i, left - i);
  append_head(writer, CBOR_TEXT, length);
  if (length == left) return append(writer, text, left);
  for (size_t i = 0; i < left;) {
    size_t step = utf8_length(at + i, left - i);
    if (step) append(writer, at + i, step);
    else append(writer, "\xef\xbf\xbd", 3);
    i += step ? step : 1;
  }
}

void write_raw(struct writer *writer, const void *bytes, size_t length) { append(writer, bytes, length); }
void write_array(struct writer *writer, size_t count) { append_head(writer, 4, count); }
void write_map(struct writer *writer, size_t pairs) { append_head(writer, CBOR_MAP, pairs); }

void write_uint_pair(struct writer *writer, const char *key, uint64_t value) {
  write_text(writer, key);
  write_uint(writer, value);
}

void write_int_pair(struct writer *writer, const char *key, int64_t value) {
  write_text(writer, key);
  write_int(writer, value);
}

void write_bool_pair(struct writer *writer, const char *key, bool value) {
  write_text(writer, key);
  write_bool(writer, value);
}

void write_text_pair(struct writer *writer, const char *key, const char *text) {
  write_text(writer, key);
  if (text) write_text(writer, text);
  else write_null(writer);
}

size_t put_head(uint8_t *out, uint8_t major, uint64_t value) {
  uint8_t top = (uint8_t)(major << 5);
  if (value < 24) return out[0] = (uint8_t)(top | value), 1;
  int width = value <= UINT8_MAX ? 0 : value <= UINT16_MAX ? 1 : value <= UINT32_MAX ? 2 : 3;
  size_t bytes = (size_t)1 << width;
  out[0] = (uint8_t)(top | (24 + width));
  for (size_t i = bytes; i; i--, value >>= 8) out[i] = (uint8_t)value;
  return 1 + bytes;
}

static void append_head(struct writer *writer, uint8_t major, uint64_t value) {
  uint8_t head[9];
  append(writer, head, put_head(head, major, value));
}

static void append(struct writer *writer, const void *bytes, size_t length) {
  if (writer->failed || !length) return;
  if (length > writer->max - writer->length) {
    writer->failed = true;
    return;
  }
  if (writer->length + length > writer->capacity) {
    size_t capacity = writer->capacity ? writer->capacity : 128;
    while (capacity < writer->length + length) capacity *= 2;
    uint8_t *grown = realloc(writer->at, capacity);
    if (!grown) {
      writer->failed = true;
      return;
    }
    writer->at = grown;
    writer->capacity = capacity;
  }
  memcpy(writer->at + writer->length, bytes, length);
  writer->length += length;
}

/** Length of the UTF-8 sequence that starts here, 0 when it is invalid (overlong, surrogate, truncated, out of range). */
static size_t utf8_length(const uint8_t *at, size_t left) {
  uint8_t first = at[0];
  if (first < 0x80) return 1;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > left) return 0;
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (at[1] < low || at[1] > high) return 0;
  for (size_t i = 2; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  return length;
}
