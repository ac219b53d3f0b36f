#include "files/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "bounds.h"
#include "files/answer.h"
#include "files/handles.h"

#define PREFIX "user."

enum { NAMES_MAX = 64 * 1024, NAME_MAX_BYTES = 255 };

// A file by its descriptor, or by its path when that is -1.
struct target {
  const char *path;
  int fd;
};

static bool write_pairs(struct writer *, const struct target *, const char *names, size_t length);
static ssize_t read_value(const struct target *, const char *name, char value[METADATA_MAX + 1]);
static bool is_user(const char *name);
static bool is_given(const struct strings *pairs, const char *name);
static bool are_valid(const struct strings *pairs);
static int replace(const struct target *, const struct strings *pairs);

static ssize_t list_names(const struct target *target, char *names, size_t size) {
  return target->fd < 0 ? listxattr(target->path, names, size) : flistxattr(target->fd, names, size);
}

static int set_value(const struct target *target, const char *name, const char *value) {
  size_t length = strlen(value);
  return target->fd < 0 ? setxattr(target->path, name, value, length, 0) : fsetxattr(target->fd, name, value, length, 0);
}

static int remove_value(const struct target *target, const char *name) {
  return target->fd < 0 ? removexattr(target->path, name) : fremovexattr(target->fd, name);
}

void file_get_metadata(struct conn *conn, uint32_t id, struct file_request *request) {
  struct target target = {request->path, -1};
  char *names = malloc(NAMES_MAX);
  if (!names) return file_refused(conn, id, "metadata: out of memory");
  ssize_t length = list_names(&target, names, NAMES_MAX);
  // A file system without extended attributes holds none.
  if (length < 0 && errno == ENOTSUP) length = 0;
  if (length < 0) {
    file_failed(conn, id, "metadata", errno);
    free(names);
    return;
  }
  struct writer payload = file_answer_new();
  write_map(&payload, 1);
  write_text(&payload, "Metadata");
  bool ok = write_pairs(&payload, &target, names, (size_t)length);
  free(names);
  if (ok) return file_answer_send(conn, id, &payload);
  writer_free(&payload);
  file_refused(conn, id, "metadata: out of memory");
}

void file_set_metadata(struct conn *conn, uint32_t id, struct file_request *request) {
  struct handle *handle = request->path ? NULL : handle_find(conn, request->handle);
  if (!request->path && !handle) return file_refused(conn, id, "metadata: neither a path nor a known handle was given");
  if (!are_valid(&request->pairs)) return file_refused(conn, id, "metadata: a name or value is too long, or has no partner");
  struct target target = {request->path, handle ? handle->fd : -1};
  if (replace(&target, &request->pairs) < 0) return file_failed(conn, id, "metadata", errno);
  file_ok(conn, id);
}

/** Names and values alternate, in one array: how many there are is known only at the end. */
static bool write_pairs(struct writer *payload, const struct target *target, const char *names, size_t length) {
  struct writer pairs = writer_new();
  size_t count = 0;
  char value[METADATA_MAX + 1];
  for (const char *name = names; name < names + length; name += strlen(name) + 1) {
    // One that is too long, or was removed meanwhile, is left out.
    if (!is_user(name) || read_value(target, name, value) < 0) continue;
    write_text(&pairs, name + strlen(PREFIX));
    write_text(&pairs, value);
    count += 2;
  }
  bool ok = !pairs.failed;
  write_array(payload, count);
  if (ok) write_raw(payload, pairs.at, pairs.length);
  writer_free(&pairs);
  return ok;
}

static ssize_t read_value(const struct target *target, const char *name, char value[METADATA_MAX + 1]) {
  ssize_t length = getxattr(target->path, name, value, METADATA_MAX);
  if (length < 0) return -1;
  value[length] = 0;
  return length;
}

static bool is_user(const char *name) { return !strncmp(name, PREFIX, strlen(PREFIX)) && name[strlen(PREFIX)]; }

static bool are_valid(const struct strings *pairs) {
  size_t total = 0;
  if (pairs->count % 2) return false;
  for (size_t i = 0; i < pairs->count; i += 2) {
    size_t name = strlen(pairs->at[i]);
    total += name + strlen(pairs->at[i + 1]);
    if (!name || name + strlen(PREFIX) > NAME_MAX_BYTES || total > METADATA_MAX) return false;
  }
  return true;
}

/** Sets before it removes, so that a full disk loses nothing. */
static int replace(const struct target *target, const struct strings *pairs) {
  char name[NAME_MAX_BYTES + 1];
  for (size_t i = 0; i < pairs->count; i += 2) {
    snprintf(name, sizeof name, PREFIX "%s", pairs->at[i]);
    if (set_value(target, name, pairs->at[i + 1]) < 0) return -1;
  }
  char *names = malloc(NAMES_MAX);
  if (!names) return errno = ENOMEM, -1;
  ssize_t length = list_names(target, names, NAMES_MAX);
  int result = 0;
  if (length < 0 && errno != ENOTSUP) result = -1;
  for (const char *at = names; !result && length > 0 && at < names + length; at += strlen(at) + 1) {
    if (is_user(at) && !is_given(pairs, at + strlen(PREFIX))) result = remove_value(target, at);
  }
  int error = errno;
  free(names);
  return errno = error, result;
}

static bool is_given(const struct strings *pairs, const char *name) {
  for (size_t i = 0; i < pairs->count; i += 2) {
    if (!strcmp(pairs->at[i], name)) return true;
  }
  return false;
}
