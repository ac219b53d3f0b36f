#include "process/detached-process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "process/detached-reading.h"
#include "process/shutdown-state.h"
#include "wire/activity.h"

/** Less free space than this counts as a full disk: a large write that does not fit fails while some space is left. */
enum { DISK_FULL_BYTES = 2 * 1024 * 1024, DISK_FULL_PART = 32 };

/** A longer write is not interactive output, and the process will go on writing. */
enum { WORD_BYTES = 4096 };

static struct detached *detached_of(struct process *process) { return containing(process, struct detached, process); }

void detached_use(struct detached *detached) {
  if (!detached->is_spare || detached->process.is_finished) return;
  detached->is_spare = false;
  activity_count.processes++;
}

/** It has ended. */
static void detached_leave(struct detached *detached) {
  if (detached->is_spare) return;
  activity_count.processes--;
  activity();
}

void detached_destroy(struct detached *detached) {
  struct session *waiting[] = {&detached->starting, &detached->writing, &detached->forgetting};
  for (size_t i = 0; i < COUNT(waiting); i++) {
    if (waiting[i]->conn) session_close(waiting[i]);
  }
  if (!detached->process.is_finished) detached_leave(detached);
  readings_end(detached);
  process_free(&detached->process);
  timer_stop(&detached->unread_timer);
  list_remove(&detached->all);
  for (int i = 0; i < 2; i++) ring_free(&detached->rings[i]);
  free(detached->written);
  detached_count--;
  free(detached);
}

static void started(struct process *process) {
  if (!detached_of(process)->is_spare) activity();
  detached_tell_start(detached_of(process));
}

static void failed(struct process *process, const struct failure *failure) {
  struct detached *detached = detached_of(process);
  struct conn *conn = detached->starting.conn;
  if (conn) failure_send(conn, detached->starting.id, "svc.detached.failed", failure);
  detached_answer(&detached->forgetting, "svc.detached.done", NULL);
  detached_destroy(detached);
}

/** The oldest process that has ended releases its output, so that a running one can keep more of its own. */
static bool reclaim(void) {
  for (struct list *node = detacheds.next; node != &detacheds; node = node->next) {
    struct detached *detached = containing(node, struct detached, all);
    bool is_empty = !detached->rings[0].length && !detached->rings[1].length;
    if (!detached->process.is_finished || is_empty || !list_is_empty(&detached->readings)) continue;
    for (int i = 0; i < 2; i++) ring_forget(&detached->rings[i], ring_end(&detached->rings[i]));
    return true;
  }
  return false;
}

/** Drops old output that no reader is waiting for. False: readers must take some first. */
static bool make_room(struct detached *detached, int stream) {
  struct ring *ring = &detached->rings[stream];
  if (ring->length < ring->limit && reclaim()) return true;
  uint64_t until = ring->base + (ring->length + 3) / 4, needed = readings_need(detached, stream);
  if (until > needed) until = needed;
  if (until <= ring->base) return false;
  ring_forget(ring, until);
  return true;
}

/** How much the process may still write; everything since its start counts. */
static size_t allowance(const struct detached *detached) {
  uint64_t written = ring_end(&detached->rings[0]) + ring_end(&detached->rings[1]);
  if (!detached->output_max) return SIZE_MAX;
  return written < detached->output_max ? (size_t)(detached->output_max - written) : 0;
}

/** Output beyond the limit ends the process, and is not kept. */
static ssize_t read_excess(struct detached *detached, int fd) {
  ssize_t got = read(fd, scratch(), SCRATCH_BYTES);
  if (got > 0 && !detached->was_over_limit) detached->was_over_limit = process_kill(&detached->process) == 0;
  return got;
}

static ssize_t take(struct detached *detached, int stream, int fd) {
  struct ring *ring = &detached->rings[stream];
  size_t most = allowance(detached);
  if (!most) return read_excess(detached, fd);
  ssize_t got = ring_read(ring, fd, most);
  while (got < 0 && errno == EBUSY) {
    if (make_room(detached, stream)) {
      got = ring_read(ring, fd, most);
      continue;
    }
    if (!detached->is_held) timer_start(&detached->unread_timer, DETACHED_READER_TIMEOUT_MS);
    detached->is_held = true;
    return errno = EBUSY, -1;
  }
  return got;
}

static ssize_t readable(struct process *process, int stream, int fd) {
  struct detached *detached = detached_of(process);
  ssize_t got = take(detached, stream, fd);
  if (got <= 0) return got;
  // A process that writes a short text to both streams writes the second before we wake for the first, so readers get both at once.
  int other = process->outlets[!stream].watch.fd;
  if (got <= WORD_BYTES && other >= 0 && !process->is_reaped) (void)take(detached, !stream, other);
  if (!detached->is_spare) activity();
  readings_wake(detached);
  return got;
}

static bool is_disk_full(void) {
  struct statvfs disk;
  if (statvfs("/", &disk) != 0 || !disk.f_blocks) return false;
  return (uint64_t)disk.f_bavail * disk.f_frsize < DISK_FULL_BYTES && disk.f_bavail < disk.f_blocks / DISK_FULL_PART;
}

static void finished(struct process *process) {
  struct detached *detached = detached_of(process);
  detached_leave(detached);
  timer_stop(&detached->unread_timer);
  int signal = process_signal_number(process);
  detached->was_shut_down = shutdown_is_running() && (signal == SIGTERM || signal == SIGKILL) && !process->was_oom;
  detached->was_disk_full = process_code(process) != 0 && is_disk_full();
  detached_refuse(&detached->writing, "invalid_session", "the process has exited");
  if (detached->is_leaving) {
    detached_answer(&detached->forgetting, "svc.detached.done", NULL);
    return detached_destroy(detached);
  }
  readings_wake(detached);
}

static void stdin_taken(struct sink *sink, size_t bytes, uint32_t tag, bool is_last) {
  struct detached *detached = detached_of(containing(sink, struct process, in));
  detached_stdin_waiting -= bytes;
  if (!is_last || tag != detached->write_tag) return;
  if (sink_is_open(sink)) detached_answer(&detached->writing, "svc.detached.done", NULL);
  else detached_refuse(&detached->writing, "invalid_session", "stdin is closed");
}

static void stdin_ended(struct sink *sink) {
  struct detached *detached = detached_of(containing(sink, struct process, in));
  detached_answer(&detached->writing, "svc.detached.done", NULL);
  process_stdin_ended(sink);
}

const struct process_owner detached_owner = {started, failed, readable, finished, {stdin_taken, NULL, stdin_ended}};
