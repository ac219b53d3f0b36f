#ifndef SVC_FILE_REQUEST_H
#define SVC_FILE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cbor-read.h"

struct optional {
  bool is_set;
  int64_t value;
};

struct attributes {
  struct optional mode, uid, gid, size, atime, mtime;
};

struct open_options {
  bool read, write, append, create, truncate, create_new, temporary;
  struct optional mode;
};

// The fields of every variant together; each operation reads its own.
struct file_request {
  struct arena arena;
  struct span variant;
  char *path, *target, *link_path, *src, *dst;
  bool follow_symlink, recursive;
  uint64_t handle, offset;
  struct optional mode, len, limit;
  struct strings pairs;
  struct attributes attrs;
  struct open_options options;
};

/** Reads {op: {"Variant": {…}}}. Free the arena in any case. */
bool file_request_read(struct file_request *, struct reader *payload);

#endif
