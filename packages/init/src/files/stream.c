#include "files/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"
#include "files/answer.h"
#include "files/handles.h"
#include "wire/activity.h"
#include "wire/session.h"

// Read sends core.fs.data while the peer has room, a chunk per turn. Write takes core.fs.data until an empty one.

enum { READ_CHUNK = SCRATCH_BYTES };

struct reading {
  struct session session;
  struct task task;
  struct handle *handle;
  uint64_t offset, left;
};

struct writing {
  struct session session;
  struct handle *handle;
  uint64_t offset, written;
  struct optional expected;
  bool is_answered; // failed: further data is discarded until its end
};

static void on_read_slice(struct task *);
static void on_read_room(struct session *);
static void on_read_gone(struct session *, enum conn_end);
static void on_write_gone(struct session *, enum conn_end);
static void end_reading(struct reading *);
static void end_writing(struct writing *);
static void store(struct writing *, struct span data);

static const struct session_kind reading_kind = {on_read_room, on_read_gone};
static const struct session_kind writing_kind = {NULL, on_write_gone};

/** The open file of a request and a slot for its stream; NULL when the request was refused. */
static struct handle *take(struct conn *conn, uint32_t id, struct file_request *request, const char *operation) {
  struct handle *handle = handle_find(conn, request->handle);
  char message[96] = "";
  if (!handle || handle->is_dir) snprintf(message, sizeof message, "%s: unknown file handle", operation);
  else if (request->offset > INT64_MAX) snprintf(message, sizeof message, "%s: offset is out of range", operation);
  else if (request->len.is_set && request->len.value < 0) snprintf(message, sizeof message, "%s: len is out of range", operation);
  else if (!conn_take_slot(conn))
    snprintf(message, sizeof message, "%s: 1024 handles and streams are open; end some first", operation);
  if (*message) return file_refused(conn, id, message), NULL;
  handle->users++;
  return handle;
}

static void give_back(struct conn *conn, struct handle *handle) {
  handle_unuse(handle);
  conn_give_slot(conn);
}

void file_read(struct conn *conn, uint32_t id, struct file_request *request) {
  struct handle *handle = take(conn, id, request, "read");
  struct reading *reading = handle ? calloc(1, sizeof *reading) : NULL;
  if (handle && !reading) give_back(conn, handle), file_failed(conn, id, "read", ENOMEM);
  if (!reading) return;
  reading->handle = handle;
  reading->offset = request->offset;
  reading->left = request->len.is_set ? (uint64_t)request->len.value : UINT64_MAX;
  session_open(&reading->session, conn, id, &reading_kind);
  activity_count.files++;
  task_init(&reading->task, on_read_slice);
  on_read_slice(&reading->task);
}

static void on_read_slice(struct task *task) {
  struct reading *reading = containing(task, struct reading, task);
  struct conn *conn = reading->session.conn;
  uint32_t id = reading->session.id;
  if (!conn_has_room(conn)) return; // on_read_room continues
  size_t wanted = reading->left < READ_CHUNK ? (size_t)reading->left : READ_CHUNK;
  if (reading->offset > INT64_MAX - (uint64_t)READ_CHUNK) wanted = 0;
  ssize_t got = wanted ? pread(reading->handle->fd, scratch(), wanted, (off_t)reading->offset) : 0;
  if (got > 0) {
    reading->offset += (uint64_t)got;
    reading->left -= (uint64_t)got;
    activity();
    conn_send_data(conn, id, "core.fs.data", scratch(), (size_t)got);
    return task_queue(task);
  }
  int error = errno;
  end_reading(reading);
  if (got < 0) file_failed(conn, id, "read", error);
  else file_ok(conn, id);
}

static void on_read_room(struct session *session) { task_queue(&containing(session, struct reading, session)->task); }

static void on_read_gone(struct session *session, enum conn_end end) {
  (void)end;
  end_reading(containing(session, struct reading, session));
}

static void end_reading(struct reading *reading) {
  give_back(reading->session.conn, reading->handle);
  session_close(&reading->session);
  task_cancel(&reading->task);
  activity_count.files--;
  free(reading);
}

void file_write(struct conn *conn, uint32_t id, struct file_request *request) {
  struct handle *handle = take(conn, id, request, "write");
  struct writing *writing = handle ? calloc(1, sizeof *writing) : NULL;
  if (handle && !writing) give_back(conn, handle), file_failed(conn, id, "write", ENOMEM);
  if (!writing) return;
  writing->handle = handle;
  writing->offset = request->offset;
  writing->expected = request->len;
  session_open(&writing->session, conn, id, &writing_kind);
  activity_count.files++;
}

void file_write_data(struct conn *conn, uint32_t id, struct span data) {
  struct session *session = session_find(conn, id, &writing_kind);
  char message[64];
  if (!session) {
    snprintf(message, sizeof message, "unknown write session: %u", id);
    return file_refused(conn, id, message);
  }
  struct writing *writing = containing(session, struct writing, session);
  if (data.length) {
    if (!writing->is_answered) store(writing, data);
    return;
  }
  bool is_answered = writing->is_answered;
  bool is_short = writing->expected.is_set && (uint64_t)writing->expected.value != writing->written;
  snprintf(message, sizeof message, "write length mismatch: got %llu bytes", (unsigned long long)writing->written);
  end_writing(writing);
  if (is_answered) return;
  if (is_short) file_refused(conn, id, message);
  else file_ok(conn, id);
}

static void store(struct writing *writing, struct span data) {
  struct conn *conn = writing->session.conn;
  uint32_t id = writing->session.id;
  if (writing->expected.is_set && data.length > (uint64_t)writing->expected.value - writing->written) {
    writing->is_answered = true;
    return file_refused(conn, id, "write length mismatch: more data than announced");
  }
  for (size_t done = 0; done < data.length;) {
    uint64_t at = writing->offset + writing->written;
    ssize_t wrote =
        at > INT64_MAX ? (errno = EFBIG, -1) : pwrite(writing->handle->fd, data.at + done, data.length - done, (off_t)at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      writing->is_answered = true;
      return file_failed(conn, id, "write", wrote ? errno : EIO);
    }
    done += (size_t)wrote;
    writing->written += (uint64_t)wrote;
  }
}

static void on_write_gone(struct session *session, enum conn_end end) {
  (void)end;
  end_writing(containing(session, struct writing, session));
}

static void end_writing(struct writing *writing) {
  give_back(writing->session.conn, writing->handle);
  session_close(&writing->session);
  activity_count.files--;
  free(writing);
}
