#include "files/request.h"

#include <string.h>

static void field_optional(struct reader *reader, struct arena *arena, void *target) {
  (void)arena;
  *(struct optional *)target = (struct optional){true, read_int(reader)};
}

static void field_attributes(struct reader *reader, struct arena *arena, void *target) {
  static const struct field fields[] = {
      FIELD(struct attributes, mode, field_optional, false),  FIELD(struct attributes, uid, field_optional, false),
      FIELD(struct attributes, gid, field_optional, false),   FIELD(struct attributes, size, field_optional, false),
      FIELD(struct attributes, atime, field_optional, false), FIELD(struct attributes, mtime, field_optional, false),
  };
  if (!read_fields(reader, arena, fields, COUNT(fields), target)) reader->bad = true;
}

static void field_options(struct reader *reader, struct arena *arena, void *target) {
  static const struct field fields[] = {
      FIELD(struct open_options, read, field_bool, false),      FIELD(struct open_options, write, field_bool, false),
      FIELD(struct open_options, append, field_bool, false),    FIELD(struct open_options, create, field_bool, false),
      FIELD(struct open_options, truncate, field_bool, false),  FIELD(struct open_options, create_new, field_bool, false),
      FIELD(struct open_options, temporary, field_bool, false), FIELD(struct open_options, mode, field_optional, false),
  };
  if (!read_fields(reader, arena, fields, COUNT(fields), target)) reader->bad = true;
}

static void field_operation(struct reader *reader, struct arena *arena, void *target) {
  static const struct field fields[] = {
      FIELD(struct file_request, path, field_string, false),      FIELD(struct file_request, target, field_string, false),
      FIELD(struct file_request, link_path, field_string, false), FIELD(struct file_request, src, field_string, false),
      FIELD(struct file_request, dst, field_string, false),       FIELD(struct file_request, follow_symlink, field_bool, false),
      FIELD(struct file_request, recursive, field_bool, false),   FIELD(struct file_request, handle, field_uint, false),
      FIELD(struct file_request, offset, field_uint, false),      FIELD(struct file_request, mode, field_optional, false),
      FIELD(struct file_request, len, field_optional, false),     FIELD(struct file_request, limit, field_optional, false),
      FIELD(struct file_request, attrs, field_attributes, false), FIELD(struct file_request, options, field_options, false),
      FIELD(struct file_request, pairs, field_strings, false),
  };
  struct file_request *request = target;
  struct container map = read_map(reader);
  if (!read_next(reader, &map)) {
    reader->bad = true;
    return;
  }
  request->variant = read_text(reader);
  if (!read_fields(reader, arena, fields, COUNT(fields), request)) reader->bad = true;
  if (read_next(reader, &map)) reader->bad = true; // a second variant is malformed
}

bool file_request_read(struct file_request *request, struct reader *payload) {
  static const struct field fields[] = {{"op", field_operation, 0, true}};
  *request = (struct file_request){.follow_symlink = true};
  return read_fields(payload, &request->arena, fields, 1, request);
}
