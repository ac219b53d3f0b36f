#include "files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/answer.h"
#include "files/attributes.h"
#include "files/copy.h"
#include "files/handles.h"
#include "files/list.h"
#include "files/metadata.h"
#include "files/remove.h"
#include "files/stream.h"
#include "wire/session.h"

struct operation {
  const char *variant;
  void (*run)(struct conn *, uint32_t id, struct file_request *);
  bool needs_path;
};

static void real_path(struct conn *, uint32_t id, struct file_request *);
static void stat_path(struct conn *, uint32_t id, struct file_request *);
static void read_link(struct conn *, uint32_t id, struct file_request *);
static void make_link(struct conn *, uint32_t id, struct file_request *);
static void make_dir(struct conn *, uint32_t id, struct file_request *);
static void remove_file(struct conn *, uint32_t id, struct file_request *);
static void remove_dir(struct conn *, uint32_t id, struct file_request *);
static void move(struct conn *, uint32_t id, struct file_request *);

static const struct operation operations[] = {
    {"RealPath", real_path, true},
    {"Stat", stat_path, true},
    {"SetStat", file_setstat, true},
    {"List", file_list, true},
    {"ReadLink", read_link, true},
    {"Symlink", make_link, false},
    {"Mkdir", make_dir, true},
    {"Remove", remove_file, true},
    {"RemoveDir", remove_dir, true},
    {"Copy", file_copy, false},
    {"Rename", move, false},
    {"OpenFile", file_open, true},
    {"OpenDir", file_open_dir, true},
    {"CloseHandle", file_close, false},
    {"Read", file_read, false},
    {"Write", file_write, false},
    {"ReadDir", file_read_dir, false},
    {"FStat", file_fstat, false},
    {"FSetStat", file_fsetstat, false},
    {"GetMetadata", file_get_metadata, true},
    {"SetMetadata", file_set_metadata, false},
};

void files_request(struct conn *conn, struct message *message) {
  struct file_request request;
  const struct operation *operation = NULL;
  if (session_find(conn, message->id, NULL)) return conn_error(conn, message->id, "invalid_session", "this id is in use", NULL);
  bool ok = file_request_read(&request, &message->payload);
  for (size_t i = 0; ok && i < COUNT(operations) && !operation; i++) {
    if (span_is(request.variant, operations[i].variant)) operation = &operations[i];
  }
  bool is_pair = ok && operation && (operation->run == file_copy || operation->run == move);
  if (!ok) message->payload.bad = true;
  else if (!operation) file_refused(conn, message->id, "unknown file operation");
  else if (operation->needs_path && !request.path) file_refused(conn, message->id, "path is missing");
  else if (is_pair && (!request.src || !request.dst)) file_refused(conn, message->id, "src or dst is missing");
  else operation->run(conn, message->id, &request);
  arena_free(&request.arena);
}

void files_data(struct conn *conn, struct message *message) {
  struct span data = {0};
  if (message_data(message, &data)) file_write_data(conn, message->id, data);
}

static void answer(struct conn *conn, uint32_t id, const char *operation, int result) {
  if (result < 0) file_failed(conn, id, operation, errno);
  else file_ok(conn, id);
}

static void real_path(struct conn *conn, uint32_t id, struct file_request *request) {
  char *resolved = realpath(request->path, NULL);
  if (resolved) file_path(conn, id, resolved);
  else file_failed(conn, id, "realpath", errno);
  free(resolved);
}

static void stat_path(struct conn *conn, uint32_t id, struct file_request *request) {
  struct stat found;
  if (fstatat(AT_FDCWD, request->path, &found, request->follow_symlink ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
    return file_failed(conn, id, "stat", errno);
  }
  file_stat(conn, id, request->path, &found);
}

static void read_link(struct conn *conn, uint32_t id, struct file_request *request) {
  char target[PATH_MAX + 1];
  ssize_t length = readlink(request->path, target, sizeof target - 1);
  if (length < 0) return file_failed(conn, id, "readlink", errno);
  target[length] = 0;
  file_path(conn, id, target);
}

static void make_link(struct conn *conn, uint32_t id, struct file_request *request) {
  if (!request->target || !request->link_path) return file_refused(conn, id, "target or link_path is missing");
  answer(conn, id, "symlink", symlink(request->target, request->link_path));
}

/** mkdir that accepts an existing folder. */
static int ensure_dir(const char *path, mode_t mode) {
  struct stat found;
  if (mkdir(path, mode) == 0) return 0;
  int error = errno;
  if (error == EEXIST && stat(path, &found) == 0 && S_ISDIR(found.st_mode)) return 0;
  return errno = error, -1;
}

static void make_dir(struct conn *conn, uint32_t id, struct file_request *request) {
  char partial[PATH_MAX];
  mode_t mode = request->mode.is_set ? (mode_t)(request->mode.value & 07777) : 0755;
  if (!*request->path) return file_failed(conn, id, "mkdir", ENOENT);
  if (strlen(request->path) >= sizeof partial) return file_failed(conn, id, "mkdir", ENAMETOOLONG);
  strcpy(partial, request->path);
  for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (ensure_dir(partial, 0755) < 0) return file_failed(conn, id, "mkdir", errno);
    *slash = '/';
  }
  answer(conn, id, "mkdir", ensure_dir(partial, mode));
}

static void remove_file(struct conn *conn, uint32_t id, struct file_request *request) {
  answer(conn, id, "remove", unlink(request->path));
}

static void remove_dir(struct conn *conn, uint32_t id, struct file_request *request) {
  if (request->recursive) return file_remove_tree(conn, id, request);
  answer(conn, id, "rmdir", rmdir(request->path));
}

static void move(struct conn *conn, uint32_t id, struct file_request *request) {
  answer(conn, id, "rename", rename(request->src, request->dst));
}
