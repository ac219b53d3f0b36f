#include "files/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/answer.h"
#include "files/entries.h"
#include "wire/activity.h"
#include "wire/session.h"

/**
 * Removes a folder and its contents, a slice per turn, with one open folder at any depth. Links are removed, never
 * followed. Going up uses "..", compared with the folder it came from, so that a tree moved meanwhile ends the
 * work instead of leading it elsewhere.
 */
struct removing {
  struct session session;
  struct task task;
  int fd; // the folder being emptied
  struct level {
    dev_t device;
    ino_t inode;
  } *levels; // the folder itself last
  size_t depth, capacity;
  char *path;
};

enum { SLICE = 256, DEPTH_MAX = 100000, ENTRIES_BUFFER = 32 * 1024 };

static void on_slice(struct task *);
static void on_gone(struct session *, enum conn_end);
static void destroy(struct removing *);
static int work(struct removing *);
static int empty_some(struct removing *);
static bool enter(struct removing *, int fd);
static int leave(struct removing *);

static const struct session_kind kind = {NULL, on_gone};

void file_remove_tree(struct conn *conn, uint32_t id, struct file_request *request) {
  int fd = open(request->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return file_failed(conn, id, "rmdir", errno == ELOOP ? ENOTDIR : errno);
  bool has_slot = conn_take_slot(conn);
  struct removing *removing = has_slot ? calloc(1, sizeof *removing) : NULL;
  char *path = removing ? strdup(request->path) : NULL;
  if (!path) {
    if (has_slot) conn_give_slot(conn);
    free(removing);
    close(fd);
    return file_failed(conn, id, "rmdir", ENOMEM);
  }
  removing->fd = -1;
  removing->path = path;
  session_open(&removing->session, conn, id, &kind);
  activity_count.files++;
  task_init(&removing->task, on_slice);
  if (enter(removing, fd)) return on_slice(&removing->task);
  int error = errno;
  close(fd);
  destroy(removing);
  file_failed(conn, id, "rmdir", error);
}

static void on_slice(struct task *task) {
  struct removing *removing = containing(task, struct removing, task);
  struct conn *conn = removing->session.conn;
  uint32_t id = removing->session.id;
  int more = work(removing);
  if (more > 0) return task_queue(task);
  int error = more < 0 ? errno : 0;
  if (!error && rmdir(removing->path) < 0) error = errno;
  destroy(removing);
  if (error) file_failed(conn, id, "rmdir", error);
  else file_ok(conn, id);
}

/** One slice: 1 there is more, 0 the top folder is empty, -1 with errno. */
static int work(struct removing *removing) {
  int more = empty_some(removing);
  if (more != 0) return more;
  return removing->depth == 1 ? 0 : leave(removing);
}

/** Unlinks entries of the current folder; enters the first folder that is not empty. 0: the folder is empty. */
static int empty_some(struct removing *removing) {
  static uint64_t buffer[ENTRIES_BUFFER / sizeof(uint64_t)];
  int removed = 0;
  if (lseek(removing->fd, 0, SEEK_SET) < 0) return -1;
  long got = read_entries(removing->fd, buffer, sizeof buffer);
  if (got < 0) return -1;
  for (long at = 0; at < got && removed < SLICE;) {
    const struct entry *entry = (const struct entry *)(void *)((char *)buffer + at);
    at += entry->length;
    if (is_dot(entry->name)) continue;
    removed++;
    if (unlinkat(removing->fd, entry->name, 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) return -1; // some file systems return EPERM for a folder
    int error = errno;
    if (unlinkat(removing->fd, entry->name, AT_REMOVEDIR) == 0) continue;
    if (errno == ENOTDIR) return errno = error, -1;
    if (errno != ENOTEMPTY && errno != EEXIST) return -1;
    int fd = openat(removing->fd, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    if (enter(removing, fd)) return 1;
    error = errno;
    close(fd);
    return errno = error, -1;
  }
  return removed > 0;
}

static bool enter(struct removing *removing, int fd) {
  struct stat found;
  if (fstat(fd, &found) < 0) return false;
  if (removing->depth >= DEPTH_MAX) return errno = ENAMETOOLONG, false;
  if (removing->depth == removing->capacity) {
    size_t capacity = removing->capacity ? removing->capacity * 2 : 16;
    struct level *grown = realloc(removing->levels, capacity * sizeof *grown);
    if (!grown) return false;
    removing->levels = grown;
    removing->capacity = capacity;
  }
  removing->levels[removing->depth++] = (struct level){found.st_dev, found.st_ino};
  if (removing->fd >= 0) close(removing->fd);
  removing->fd = fd;
  return true;
}

/** Returns to the parent, whose scan then removes the emptied folder. */
static int leave(struct removing *removing) {
  struct stat found;
  const struct level *parent = &removing->levels[removing->depth - 2];
  int fd = openat(removing->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  if (fstat(fd, &found) < 0 || found.st_dev != parent->device || found.st_ino != parent->inode) {
    close(fd);
    return errno = EBUSY, -1;
  }
  close(removing->fd);
  removing->fd = fd;
  removing->depth--;
  return 1;
}

static void on_gone(struct session *session, enum conn_end end) {
  (void)end;
  destroy(containing(session, struct removing, session));
}

static void destroy(struct removing *removing) {
  conn_give_slot(removing->session.conn);
  session_close(&removing->session);
  task_cancel(&removing->task);
  activity_count.files--;
  if (removing->fd >= 0) close(removing->fd);
  free(removing->levels);
  free(removing->path);
  free(removing);
}
