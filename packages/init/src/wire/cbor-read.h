#ifndef SVC_CBOR_READ_H
#define SVC_CBOR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/arena.h"

// Reads untrusted CBOR. Errors are sticky: after the first one every call returns nothing,
// so that callers check `bad` once, at the end. Strings in chunks are joined in place: the bytes are read once.
struct reader {
  uint8_t *at, *end;
  bool bad;
};

struct span {
  uint8_t *at;
  size_t length;
};

struct container {
  uint64_t left;
  bool indefinite;
};

bool read_null(struct reader *); // consumes null or undefined when it is next
uint64_t read_uint(struct reader *);
int64_t read_int(struct reader *);
bool read_bool(struct reader *);
struct span read_bytes(struct reader *);
struct span read_text(struct reader *);
struct container read_array(struct reader *);
struct container read_map(struct reader *);
/** True while the container has another item (for a map: another pair). */
bool read_next(struct reader *, struct container *);
void read_skip(struct reader *);

bool span_is(struct span, const char *text);

// A map with known text keys, read into a struct. Unknown keys are skipped, null leaves the default.
struct field {
  const char *name;
  void (*read)(struct reader *, struct arena *, void *target);
  size_t offset;
  bool required;
};

/** False when the map is malformed, a value has the wrong type, or a required key is missing. */
bool read_fields(struct reader *, struct arena *, const struct field *, size_t count, void *target);

void field_string(struct reader *, struct arena *, void *target);  // char *, no NUL inside
void field_strings(struct reader *, struct arena *, void *target); // struct strings
void field_bytes(struct reader *, struct arena *, void *target);   // struct span
void field_uint(struct reader *, struct arena *, void *target);    // uint64_t
void field_int(struct reader *, struct arena *, void *target);     // int64_t
void field_bool(struct reader *, struct arena *, void *target);    // bool

#define FIELD(type, name, reader, needed) {#name, reader, offsetof(type, name), needed}
#define COUNT(array) (sizeof(array) / sizeof *(array))

#endif
