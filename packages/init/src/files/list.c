#include "files/list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"
#include "files/answer.h"
#include "files/entries.h"
#include "files/handles.h"
#include "wire/session.h"

// An answer holds one array whose length comes first, so entries are collected before they are sent. List works in
// slices, one at a time per connection: a large folder neither blocks other connections nor takes more than one frame.

enum { SLICE = 512, READ_DIR_DEFAULT = 128, READ_DIR_MAX = 4096, ENTRIES_BUFFER = 32 * 1024 };

struct listing {
  struct session session;
  struct task task;
  struct writer entries;
  size_t count;
  int fd;
  char *path;
};

static void on_slice(struct task *);
static void on_gone(struct session *, enum conn_end);
static void destroy(struct listing *);
static long gather(int fd, const char *path, size_t max, struct writer *entries, size_t *count);
static void answer(struct conn *, uint32_t id, struct writer *entries, size_t count);

static const struct session_kind kind = {NULL, on_gone};

void file_list(struct conn *conn, uint32_t id, struct file_request *request) {
  int fd = open(request->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return file_failed(conn, id, "list", errno);
  struct listing *listing = calloc(1, sizeof *listing);
  char *path = strdup(request->path);
  if (!listing || !path) {
    free(listing);
    free(path);
    close(fd);
    return file_refused(conn, id, "list: out of memory");
  }
  listing->fd = fd;
  listing->path = path;
  listing->entries = writer_new();
  session_open(&listing->session, conn, id, &kind);
  task_init(&listing->task, on_slice);
  conn_set_busy(conn, true);
  on_slice(&listing->task);
}

void file_read_dir(struct conn *conn, uint32_t id, struct file_request *request) {
  struct handle *handle = handle_find(conn, request->handle);
  if (!handle || !handle->is_dir) return file_refused(conn, id, "readdir: unknown folder handle");
  int64_t limit = request->limit.is_set ? request->limit.value : READ_DIR_DEFAULT;
  if (limit < 1) return file_refused(conn, id, "readdir: limit must be at least 1");
  struct writer entries = writer_new();
  size_t count = 0;
  if (gather(handle->fd, handle->path, limit < READ_DIR_MAX ? (size_t)limit : READ_DIR_MAX, &entries, &count) < 0) {
    writer_free(&entries);
    return file_failed(conn, id, "readdir", errno);
  }
  answer(conn, id, &entries, count);
}

static void on_slice(struct task *task) {
  struct listing *listing = containing(task, struct listing, task);
  struct conn *conn = listing->session.conn;
  uint32_t id = listing->session.id;
  long more = gather(listing->fd, listing->path, SLICE, &listing->entries, &listing->count);
  if (more > 0 && !listing->entries.failed) return task_queue(task);
  if (more < 0) file_failed(conn, id, "list", errno);
  else answer(conn, id, &listing->entries, listing->count);
  destroy(listing);
}

static void on_gone(struct session *session, enum conn_end end) {
  (void)end;
  destroy(containing(session, struct listing, session));
}

static void destroy(struct listing *listing) {
  conn_set_busy(listing->session.conn, false);
  session_close(&listing->session);
  task_cancel(&listing->task);
  writer_free(&listing->entries);
  close(listing->fd);
  free(listing->path);
  free(listing);
}

/** Adds up to `max` entries from the current position. 1: there may be more, 0: the end, -1 with errno. */
static long gather(int fd, const char *path, size_t max, struct writer *entries, size_t *count) {
  static uint64_t buffer[ENTRIES_BUFFER / sizeof(uint64_t)];
  const char *slash = *path && path[strlen(path) - 1] == '/' ? "" : "/";
  size_t taken = 0;
  while (taken < max) {
    long got = read_entries(fd, buffer, sizeof buffer);
    if (got <= 0) return got;
    for (long at = 0; at < got;) {
      const struct entry *entry = (const struct entry *)(void *)((char *)buffer + at);
      char full[PATH_MAX + NAME_MAX + 2];
      struct stat found;
      at += entry->length;
      if (is_dot(entry->name)) continue;
      if (entries->failed) return 1;
      snprintf(full, sizeof full, "%s%s%s", path, slash, entry->name);
      // Deleted between the two calls: skipped.
      if (fstatat(fd, entry->name, &found, AT_SYMLINK_NOFOLLOW) == 0) {
        file_entry(entries, full, &found);
        ++*count;
      }
      if (++taken < max) continue;
      return at < got && lseek(fd, entry->next, SEEK_SET) < 0 ? -1 : 1;
    }
  }
  return 1;
}

static void answer(struct conn *conn, uint32_t id, struct writer *entries, size_t count) {
  struct writer payload = file_answer_new();
  write_map(&payload, 1);
  write_text(&payload, "List");
  write_array(&payload, count);
  write_raw(&payload, entries->at, entries->length);
  payload.failed |= entries->failed;
  if (entries->failed) payload.length = payload.max; // reports "too large" instead of "out of memory"
  writer_free(entries);
  file_answer_send(conn, id, &payload);
}
