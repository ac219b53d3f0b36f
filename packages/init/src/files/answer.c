#include "files/answer.h"

#include <stdio.h>
#include <string.h>

#include "wire/activity.h"
#include "wire/failure.h"

struct writer file_answer_new(void) {
  struct writer payload = writer_new();
  write_map(&payload, 3);
  write_bool_pair(&payload, "ok", true);
  write_text_pair(&payload, "error", NULL);
  write_text(&payload, "data");
  return payload;
}

void file_answer_send(struct conn *conn, uint32_t id, struct writer *payload) {
  activity();
  bool is_memory = payload->length < payload->max / 2;
  if (conn_answer(conn, id, FLAG_TERMINAL, "core.fs.response", payload)) return;
  file_refused(conn, id, is_memory ? "out of memory" : "the answer does not fit one frame; use OpenDir and ReadDir");
}

static void refuse(struct conn *conn, uint32_t id, const char *message, const char *name) {
  struct writer payload = writer_new();
  write_map(&payload, 4);
  write_bool_pair(&payload, "ok", false);
  write_text_pair(&payload, "error", message);
  write_text_pair(&payload, "data", NULL);
  write_text_pair(&payload, "errno_name", name);
  activity();
  if (!conn_answer(conn, id, FLAG_TERMINAL, "core.fs.response", &payload)) conn_end(conn, CONN_LOST);
}

void file_ok(struct conn *conn, uint32_t id) {
  struct writer payload = file_answer_new();
  write_null(&payload);
  file_answer_send(conn, id, &payload);
}

void file_failed(struct conn *conn, uint32_t id, const char *operation, int error) {
  char message[128];
  snprintf(message, sizeof message, "%s: %s", operation, strerror(error));
  refuse(conn, id, message, errno_name(error));
}

void file_refused(struct conn *conn, uint32_t id, const char *message) { refuse(conn, id, message, NULL); }

void file_handle(struct conn *conn, uint32_t id, uint64_t handle) {
  struct writer payload = file_answer_new();
  write_map(&payload, 1);
  write_uint_pair(&payload, "Handle", handle);
  file_answer_send(conn, id, &payload);
}

void file_path(struct conn *conn, uint32_t id, const char *path) {
  struct writer payload = file_answer_new();
  write_map(&payload, 1);
  write_text_pair(&payload, "Path", path);
  file_answer_send(conn, id, &payload);
}

void file_stat(struct conn *conn, uint32_t id, const char *path, const struct stat *stat) {
  struct writer payload = file_answer_new();
  write_map(&payload, 1);
  write_text(&payload, "Stat");
  file_entry(&payload, path, stat);
  file_answer_send(conn, id, &payload);
}

void file_entry(struct writer *payload, const char *path, const struct stat *stat) {
  mode_t mode = stat->st_mode;
  write_map(payload, 9);
  write_text_pair(payload, "path", path);
  write_text_pair(payload, "kind", S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "dir" : S_ISLNK(mode) ? "symlink" : "other");
  write_uint_pair(payload, "size", stat->st_size < 0 ? 0 : (uint64_t)stat->st_size);
  write_uint_pair(payload, "mode", mode);
  write_int_pair(payload, "modified", stat->st_mtim.tv_sec);
  write_uint_pair(payload, "uid", stat->st_uid);
  write_uint_pair(payload, "gid", stat->st_gid);
  write_int_pair(payload, "atime", stat->st_atim.tv_sec);
  write_int_pair(payload, "mtime", stat->st_mtim.tv_sec);
}
