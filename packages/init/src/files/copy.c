#include "files/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/answer.h"
#include "files/handles.h"
#include "wire/activity.h"
#include "wire/session.h"

// Copies one file, a slice per turn. Holes stay holes.

struct copying {
  struct session session;
  struct task task;
  int from, to;
  off_t at, size;
};

static void on_slice(struct task *);
static void on_gone(struct session *, enum conn_end);
static void destroy(struct copying *);
static ssize_t copy_slice(struct copying *);

static const struct session_kind kind = {NULL, on_gone};

void file_copy(struct conn *conn, uint32_t id, struct file_request *request) {
  struct stat source, target;
  int from = open_regular(request->src, O_RDONLY, 0), to = -1;
  if (from < 0) return file_failed(conn, id, "copy", errno);
  int error = fstat(from, &source) < 0 ? errno : 0;
  if (!error && (to = open_regular(request->dst, O_WRONLY | O_CREAT, source.st_mode & 07777)) < 0) error = errno;
  if (!error && fstat(to, &target) < 0) error = errno;
  // Truncating first would destroy the source when both names lead to one file.
  if (!error && target.st_dev == source.st_dev && target.st_ino == source.st_ino) error = EINVAL;
  if (!error && ftruncate(to, 0) < 0) error = errno;
  if (!error && fchmod(to, source.st_mode & 07777) < 0) error = errno;
  bool has_slot = !error && conn_take_slot(conn);
  struct copying *copying = has_slot ? calloc(1, sizeof *copying) : NULL;
  if (!copying) {
    if (has_slot) conn_give_slot(conn);
    close(from);
    if (to >= 0) close(to);
    return file_failed(conn, id, "copy", error ? error : EMFILE);
  }
  copying->from = from;
  copying->to = to;
  copying->size = source.st_size;
  session_open(&copying->session, conn, id, &kind);
  activity_count.files++;
  task_init(&copying->task, on_slice);
  on_slice(&copying->task);
}

static void on_slice(struct task *task) {
  struct copying *copying = containing(task, struct copying, task);
  struct conn *conn = copying->session.conn;
  uint32_t id = copying->session.id;
  ssize_t copied = copy_slice(copying);
  if (copied > 0) return task_queue(task);
  int error = copied < 0 ? errno : 0;
  if (!error && copying->at < copying->size && ftruncate(copying->to, copying->size) < 0) error = errno; // the file ends in a hole
  destroy(copying);
  if (error) file_failed(conn, id, "copy", error);
  else file_ok(conn, id);
}

/** Copies one piece: >0 there is more, 0 done, -1 with errno. Files of /proc have size 0 and are read to their end. */
static ssize_t copy_slice(struct copying *copying) {
  if (copying->size > 0) {
    off_t data = lseek(copying->from, copying->at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return 0; // only a hole is left
    if (data > copying->at) copying->at = data;
  }
  ssize_t got = pread(copying->from, scratch(), SCRATCH_BYTES, copying->at);
  if (got <= 0) return got;
  for (ssize_t done = 0; done < got;) {
    ssize_t wrote = pwrite(copying->to, scratch() + done, (size_t)(got - done), copying->at + done);
    if (wrote <= 0) return wrote ? -1 : (errno = EIO, -1);
    done += wrote;
  }
  copying->at += got;
  return got;
}

static void on_gone(struct session *session, enum conn_end end) {
  (void)end;
  destroy(containing(session, struct copying, session));
}

static void destroy(struct copying *copying) {
  conn_give_slot(copying->session.conn);
  session_close(&copying->session);
  task_cancel(&copying->task);
  activity_count.files--;
  close(copying->from);
  close(copying->to);
  free(copying);
}
