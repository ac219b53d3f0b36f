#include "files/handles.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "bounds.h"
#include "files/answer.h"
#include "loop/descriptors.h"
#include "wire/activity.h"
#include "wire/session.h"

static uint64_t last_number;

static void keep_handle(struct conn *, uint32_t id, struct handle);
static void destroy(struct conn *, struct handle *);
static bool is_memory_file(int fd);
static void remove_temporary(const struct handle *);

void file_open(struct conn *conn, uint32_t id, struct file_request *request) {
  const struct open_options *options = &request->options;
  bool can_write = options->write || options->append;
  int flags = can_write ? (options->read ? O_RDWR : O_WRONLY) : O_RDONLY;
  if (options->append) flags |= O_APPEND;
  if (options->create) flags |= O_CREAT;
  if (options->create_new) flags |= O_CREAT | O_EXCL;
  if (!options->read && !can_write) return file_refused(conn, id, "open: neither read nor write was asked for");
  if (!can_write && (flags & O_CREAT || options->truncate))
    return file_refused(conn, id, "open: creating or truncating needs write");
  // Only a file that was created here is deleted on failure.
  if (options->temporary && !options->create_new) return file_refused(conn, id, "open: temporary needs create_new");
  mode_t mode = options->mode.is_set ? (mode_t)(options->mode.value & 07777) : 0644;
  // Truncated after the check of its type, so that a FIFO or device at the path is not touched.
  int fd = open_regular(request->path, flags, mode);
  if (fd >= 0 && options->truncate && ftruncate(fd, 0) < 0) {
    int error = errno;
    close(fd);
    return file_failed(conn, id, "open", error);
  }
  if (fd < 0) return file_failed(conn, id, "open", errno);
  keep_handle(conn, id, (struct handle){.fd = fd, .path = request->path, .is_temporary = options->temporary});
}

void file_open_dir(struct conn *conn, uint32_t id, struct file_request *request) {
  int fd = open(request->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return file_failed(conn, id, "opendir", errno);
  keep_handle(conn, id, (struct handle){.fd = fd, .path = request->path, .is_dir = true});
}

void file_close(struct conn *conn, uint32_t id, struct file_request *request) {
  struct handle *handle = handle_find(conn, request->handle);
  if (!handle) return file_refused(conn, id, "close: unknown handle");
  destroy(conn, handle);
  file_ok(conn, id);
}

void file_fstat(struct conn *conn, uint32_t id, struct file_request *request) {
  struct stat found;
  struct handle *handle = handle_find(conn, request->handle);
  if (!handle) return file_refused(conn, id, "fstat: unknown handle");
  if (fstat(handle->fd, &found) < 0) return file_failed(conn, id, "fstat", errno);
  file_stat(conn, id, handle->path, &found);
}

struct handle *handle_find(struct conn *conn, uint64_t number) {
  for (struct list *node = conn->handles.next; node != &conn->handles; node = node->next) {
    struct handle *handle = containing(node, struct handle, in_conn);
    if (handle->number == number) return handle;
  }
  return NULL;
}

void handle_unuse(struct handle *handle) {
  if (--handle->users || !handle->is_closed) return;
  if (handle->is_temporary) remove_temporary(handle);
  close(handle->fd);
  free(handle->path);
  free(handle);
}

void files_forget(struct conn *conn) {
  while (!list_is_empty(&conn->handles)) destroy(conn, containing(conn->handles.next, struct handle, in_conn));
}

int open_regular(const char *path, int flags, mode_t mode) {
  struct stat found;
  // SAFETY: the guest owns the path. O_NONBLOCK: a FIFO or device must not block PID 1, and is refused below.
  int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
  if (fd < 0) return errno = errno == ENXIO ? EINVAL : errno, -1;
  int error = 0;
  if (fstat(fd, &found) < 0) error = errno;
  else if (S_ISDIR(found.st_mode)) error = EISDIR;
  else if (!S_ISREG(found.st_mode)) error = EINVAL;
  else if (is_reserved_fd(fd)) error = EMFILE;
  else if (is_memory_file(fd)) error = EACCES;
  if (!error) return fd;
  close(fd);
  return errno = error, -1;
}

/** In PID 1 /proc/self/mem is the memory of PID 1 itself, which no user of the guest may see. */
static bool is_memory_file(int fd) {
  struct statfs kind;
  char link[64], target[256];
  if (fstatfs(fd, &kind) < 0 || kind.f_type != PROC_SUPER_MAGIC) return false;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, target, sizeof target - 1);
  if (length < 4) return true; // unknown: refuse
  target[length] = 0;
  return !strcmp(target + length - 4, "/mem");
}

/** Stores the descriptor `opened` with a copy of its path, or closes it. */
static void keep_handle(struct conn *conn, uint32_t id, struct handle opened) {
  struct handle *handle = is_reserved_fd(opened.fd) ? NULL : calloc(1, sizeof *handle);
  char *copy = handle ? strdup(opened.path) : NULL;
  bool ok = handle && copy;
  if (!ok || !conn_take_slot(conn)) {
    if (opened.is_temporary) remove_temporary(&opened);
    free(handle);
    free(copy);
    close(opened.fd);
    return file_refused(conn, id,
                        ok ? "open: 1024 handles are open on this connection; close some first" : "open: out of resources");
  }
  *handle = opened;
  handle->number = ++last_number;
  handle->path = copy;
  list_append(&conn->handles, &handle->in_conn);
  activity_count.files++;
  file_handle(conn, id, handle->number);
}

/** SAFETY: deletes only the file that was created here. A file swapped in between check and unlink has a name that the client chose. */
static void remove_temporary(const struct handle *handle) {
  struct stat made, found;
  if (fstat(handle->fd, &made) < 0 || lstat(handle->path, &found) < 0) return;
  if (made.st_dev == found.st_dev && made.st_ino == found.st_ino) unlink(handle->path);
}

static void destroy(struct conn *conn, struct handle *handle) {
  list_remove(&handle->in_conn);
  conn_give_slot(conn);
  activity_count.files--;
  handle->is_closed = true;
  handle->users++;
  handle_unuse(handle);
}
