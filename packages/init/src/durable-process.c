#include "durable-process.h"

#include <errno.h>
#include <string.h>

#include "activity.h"
#include "control.h"
#include "durable.h"
#include "process-state.h"

enum { PIECE = 64 * 1024 };

size_t durable_stdin_waiting;

static void started(struct process *);
static void failed(struct process *, const struct failure *);
static ssize_t readable(struct process *, int stream, int fd);
static void finished(struct process *);
static void stdin_taken(struct sink *, size_t bytes, uint32_t tag, bool is_last);
static void stdin_broken(struct sink *, int error);
static void stdin_ended(struct sink *);
static void send_output(struct conn *, struct durable *, int stream);
static void write_state(struct writer *, const struct durable *);

const struct process_owner durable_owner = {started, failed, readable, finished, {stdin_taken, stdin_broken, stdin_ended}};

static struct durable *durable_of(struct process *process) { return containing(process, struct durable, process); }

void durable_pump(struct task *task) {
  struct durable *durable = containing(task, struct durable, pump);
  bool has_more = false;
  for (int i = 0; i < 2; i++) {
    struct conn *conn = control();
    if (!conn || !durable->is_attached || !conn_has_room(conn)) return; // durable_room or an attach goes on
    send_output(conn, durable, i);
    has_more |= durable->rings[i].sent < ring_end(&durable->rings[i]);
  }
  if (has_more) return task_queue(task);
  if (!durable->process.is_finished || durable->has_told_exit) return;
  struct writer payload = writer_new();
  write_state(&payload, durable);
  durable->has_told_exit = true;
  control_notify("svc.process.exited", &payload);
}

void durable_room(void) {
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    task_queue(&containing(node, struct durable, all)->pump);
  }
}

void durable_detach_all(void) {
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    struct durable *durable = containing(node, struct durable, all);
    durable->is_attached = false;
    durable->start_id = durable->end_id = 0;
    sink_forget_tags(&durable->process.in);
  }
}

void durable_write_states(struct writer *payload) {
  size_t count = 0;
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    count += containing(node, struct durable, all)->process.is_started;
  }
  write_array(payload, count);
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    struct durable *durable = containing(node, struct durable, all);
    if (durable->process.is_started) write_state(payload, durable);
  }
}

static void answer(uint32_t id, const char *type) {
  if (id && control()) conn_answer_empty(control(), id, FLAG_TERMINAL, type);
}

static void started(struct process *process) {
  struct durable *durable = durable_of(process);
  struct writer payload = writer_new();
  uint32_t id = durable->start_id;
  durable->start_id = 0;
  if (!id || !control()) return;
  write_map(&payload, 1);
  write_uint_pair(&payload, "pid", (uint64_t)process->pid);
  activity();
  if (!conn_answer(control(), id, FLAG_TERMINAL, "svc.process.started", &payload)) conn_end(control(), CONN_LOST);
}

static void failed(struct process *process, const struct failure *failure) {
  struct durable *durable = durable_of(process);
  struct writer payload = writer_new();
  if (durable->start_id && control()) {
    write_map(&payload, 5);
    failure_write(&payload, failure);
    if (!conn_answer(control(), durable->start_id, FLAG_TERMINAL, "svc.process.failed", &payload)) conn_end(control(), CONN_LOST);
  }
  durable_destroy(durable);
}

static ssize_t readable(struct process *process, int stream, int fd) {
  struct durable *durable = durable_of(process);
  ssize_t got = ring_read(&durable->rings[stream], fd, DURABLE_RING);
  if (got <= 0) return got;
  activity();
  task_queue(&durable->pump);
  return got;
}

static void finished(struct process *process) {
  activity_count.processes--;
  activity();
  task_queue(&durable_of(process)->pump);
}

static void stdin_taken(struct sink *sink, size_t bytes, uint32_t tag, bool is_last) {
  durable_stdin_waiting -= bytes;
  if (!is_last || !tag) return;
  if (sink_is_open(sink)) return answer(tag, "svc.process.stdin.done");
  if (control()) conn_error(control(), tag, "invalid_session", "stdin is closed", NULL);
}

static void stdin_broken(struct sink *sink, int error) { (void)sink, (void)error; }

static void stdin_ended(struct sink *sink) {
  struct durable *durable = durable_of(containing(sink, struct process, in));
  answer(durable->end_id, "svc.process.stdin.done");
  durable->end_id = 0;
  if (durable->process.tty) sink->is_ending = false; // a terminal has no end of input
  else sink_close(sink);
}

static void send_output(struct conn *conn, struct durable *durable, int stream) {
  const uint8_t *bytes;
  struct ring *ring = &durable->rings[stream];
  size_t length = ring_unsent(ring, &bytes);
  if (length > PIECE) length = PIECE;
  if (!length) return;
  struct writer payload = writer_new();
  write_map(&payload, 4);
  write_text_pair(&payload, "key", durable->key);
  write_text_pair(&payload, "stream", stream ? "stderr" : "stdout");
  write_uint_pair(&payload, "offset", ring->sent);
  write_text(&payload, "data");
  write_bytes(&payload, bytes, length);
  if (!conn_answer(conn, 0, 0, "svc.process.output", &payload)) return conn_end(conn, CONN_LOST);
  ring->sent += length;
}

static void write_state(struct writer *payload, const struct durable *durable) {
  process_state_write(payload, durable->key, &durable->process, process_reason(&durable->process), durable->rings, 0);
}
