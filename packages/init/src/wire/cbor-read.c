#include "wire/cbor-read.h"

#include <string.h>

#include "bounds.h"

enum { UINT = 0, NEGATIVE = 1, BYTES = 2, TEXT = 3, ARRAY = 4, MAP = 5, TAG = 6, SIMPLE = 7, INDEFINITE = 31 };
enum { BREAK = 0xff, FALSE_BYTE = 0xf4, TRUE_BYTE = 0xf5, NULL_BYTE = 0xf6, UNDEFINED_BYTE = 0xf7 };

struct head {
  uint8_t major, info;
  uint64_t value;
};

static struct head read_head(struct reader *);
static struct span read_string(struct reader *, uint8_t major);
static struct span string_after(struct reader *, struct head);
static void skip_item(struct reader *, int depth);

static void fail(struct reader *reader) {
  reader->bad = true;
  reader->at = reader->end;
}

bool read_null(struct reader *reader) {
  if (reader->at == reader->end || (*reader->at != NULL_BYTE && *reader->at != UNDEFINED_BYTE)) return false;
  reader->at++;
  return true;
}

uint64_t read_uint(struct reader *reader) {
  struct head head = read_head(reader);
  if (head.major != UINT) fail(reader);
  return reader->bad ? 0 : head.value;
}

int64_t read_int(struct reader *reader) {
  struct head head = read_head(reader);
  if (head.major > NEGATIVE || head.value > INT64_MAX) fail(reader);
  if (reader->bad) return 0;
  return head.major == UINT ? (int64_t)head.value : -1 - (int64_t)head.value;
}

bool read_bool(struct reader *reader) {
  if (reader->at == reader->end || (*reader->at != FALSE_BYTE && *reader->at != TRUE_BYTE)) return fail(reader), false;
  return *reader->at++ == TRUE_BYTE;
}

struct span read_bytes(struct reader *reader) { return read_string(reader, BYTES); }
struct span read_text(struct reader *reader) { return read_string(reader, TEXT); }

struct container read_array(struct reader *reader) {
  struct head head = read_head(reader);
  if (head.major != ARRAY) fail(reader);
  return (struct container){head.value, head.info == INDEFINITE};
}

struct container read_map(struct reader *reader) {
  struct head head = read_head(reader);
  if (head.major != MAP) fail(reader);
  return (struct container){head.value, head.info == INDEFINITE};
}

bool read_next(struct reader *reader, struct container *container) {
  if (reader->bad) return false;
  if (!container->indefinite) return container->left && container->left--;
  if (reader->at == reader->end) return fail(reader), false;
  if (*reader->at != BREAK) return true;
  reader->at++;
  return false;
}

void read_skip(struct reader *reader) { skip_item(reader, 0); }

bool span_is(struct span span, const char *text) { return span.length == strlen(text) && !memcmp(span.at, text, span.length); }

bool read_fields(struct reader *reader, struct arena *arena, const struct field *fields, size_t count, void *target) {
  uint64_t seen = 0;
  struct container map = read_map(reader);
  while (read_next(reader, &map)) {
    struct span key = read_text(reader);
    size_t i = 0;
    while (i < count && !(key.at && span_is(key, fields[i].name))) i++;
    if (i == count) {
      read_skip(reader);
    } else if (!read_null(reader)) {
      fields[i].read(reader, arena, (char *)target + fields[i].offset);
      seen |= (uint64_t)1 << i;
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (fields[i].required && !(seen & ((uint64_t)1 << i))) return false;
  }
  return !reader->bad && !arena->failed;
}

void field_string(struct reader *reader, struct arena *arena, void *target) {
  struct span text = read_text(reader);
  if (reader->bad) return;
  if (memchr(text.at, 0, text.length)) return fail(reader);
  *(char **)target = arena_copy(arena, (const char *)text.at, text.length);
}

void field_strings(struct reader *reader, struct arena *arena, void *target) {
  struct container array = read_array(reader);
  while (read_next(reader, &array)) {
    char *text = NULL;
    field_string(reader, arena, &text);
    if (reader->bad || !text) return;
    if (!strings_push(arena, target, text)) return fail(reader);
  }
}

void field_bytes(struct reader *reader, struct arena *arena, void *target) {
  (void)arena;
  *(struct span *)target = read_bytes(reader);
}

void field_uint(struct reader *reader, struct arena *arena, void *target) {
  (void)arena;
  *(uint64_t *)target = read_uint(reader);
}

void field_int(struct reader *reader, struct arena *arena, void *target) {
  (void)arena;
  *(int64_t *)target = read_int(reader);
}

void field_bool(struct reader *reader, struct arena *arena, void *target) {
  (void)arena;
  *(bool *)target = read_bool(reader);
}

static struct head read_head(struct reader *reader) {
  const struct head none = {.major = SIMPLE};
  for (int tags = 0; tags <= 4; tags++) {
    if (reader->at == reader->end) return fail(reader), none;
    uint8_t first = *reader->at++;
    struct head head = {.major = first >> 5, .info = first & 31};
    size_t extra = head.info < 24 ? 0 : (size_t)1 << (head.info - 24);
    if (head.info >= 28) {
      bool can = head.info == INDEFINITE && head.major >= BYTES && head.major != TAG && first != BREAK;
      if (!can) return fail(reader), none;
      return head;
    }
    if (extra > (size_t)(reader->end - reader->at)) return fail(reader), none;
    head.value = extra ? 0 : head.info;
    for (size_t i = 0; i < extra; i++) head.value = head.value << 8 | *reader->at++;
    if (head.major != TAG) return head;
  }
  return fail(reader), none;
}

static struct span read_string(struct reader *reader, uint8_t major) {
  struct head head = read_head(reader);
  if (head.major != major) fail(reader);
  return string_after(reader, head);
}

static struct span string_after(struct reader *reader, struct head head) {
  const struct span none = {(uint8_t *)"", 0};
  if (reader->bad) return none;
  if (head.info != INDEFINITE) {
    if (head.value > (size_t)(reader->end - reader->at)) return fail(reader), none;
    struct span whole = {reader->at, (size_t)head.value};
    reader->at += whole.length;
    return whole;
  }
  struct span joined = {reader->at, 0};
  while (reader->at < reader->end && *reader->at != BREAK) {
    struct head piece = read_head(reader);
    bool fits = !reader->bad && piece.major == head.major && piece.info != INDEFINITE;
    if (!fits || piece.value > (size_t)(reader->end - reader->at)) return fail(reader), none;
    memmove(joined.at + joined.length, reader->at, (size_t)piece.value);
    joined.length += (size_t)piece.value;
    reader->at += piece.value;
  }
  if (reader->at == reader->end) return fail(reader), none;
  reader->at++;
  return joined;
}

static void skip_item(struct reader *reader, int depth) {
  if (depth > CBOR_DEPTH_MAX) return fail(reader);
  struct head head = read_head(reader);
  if (head.major == BYTES || head.major == TEXT) string_after(reader, head);
  if (head.major != ARRAY && head.major != MAP) return;
  struct container container = {head.value, head.info == INDEFINITE};
  while (read_next(reader, &container)) {
    skip_item(reader, depth + 1);
    if (head.major == MAP) skip_item(reader, depth + 1);
  }
}
