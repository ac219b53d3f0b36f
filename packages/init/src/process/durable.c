#include "process/durable.h"

#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "process/process-state.h"
#include "process/shutdown-state.h"
#include "wire/activity.h"
#include "wire/control-link.h"

enum { PIECE = 64 * 1024 };

// A process that the engine started by key. Its output is kept in rings until the engine has acknowledged it.
struct durable {
  struct process process;
  struct list all;
  struct task pump;
  struct ring rings[2];
  char key[KEY_MAX + 1];
  uint32_t start_id; // the request, until it is answered on this control connection; else 0
  bool is_attached, has_told_exit;
};

static struct list durables = {&durables, &durables};
static unsigned count;

static const struct process_owner owner; // below
static void pump(struct task *);

static struct durable *durable_of(struct process *process) { return containing(process, struct durable, process); }
static struct durable *durable_at(struct list *node) { return containing(node, struct durable, all); }

static struct durable *find_key(const char *key) {
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    if (!strcmp(durable_at(node)->key, key)) return durable_at(node);
  }
  return NULL;
}

static void refuse(struct conn *conn, uint32_t id, const char *kind, const char *message) {
  if (id) conn_error(conn, id, kind, message, NULL); // id 0 is a notification, which gets no answer
}

static void admit(struct durable *durable, uint32_t start_id, const char *key) {
  strcpy(durable->key, key); // at most KEY_MAX, checked by launch_read
  durable->start_id = start_id;
  durable->is_attached = true;
  task_init(&durable->pump, pump);
  for (int i = 0; i < 2; i++) durable->rings[i].limit = DURABLE_RING;
  list_append(&durables, &durable->all);
  count++;
  activity_count.processes++;
}

void durable_start(struct conn *conn, struct message *message) {
  struct launch launch;
  struct failure failure;
  struct durable *durable = NULL;
  bool ok = launch_read(&launch, &message->payload, LAUNCH_DURABLE);
  if (!ok) {
    message->payload.bad = true;
  } else if (find_key(launch.key)) {
    refuse(conn, message->id, "invalid_session", "a process with this key exists");
  } else if (shutdown_is_running() || count >= DURABLE_MAX || !(durable = calloc(1, sizeof *durable))) {
    failure_set(&failure, shutdown_is_running() ? "other" : "resource_limit", "start", 0,
                shutdown_is_running() ? "the sandbox is shutting down" : "too many processes");
    failure_send(conn, message->id, "svc.process.failed", &failure);
  } else if (!process_start(&durable->process, &launch, &owner, &failure)) {
    failure_send(conn, message->id, "svc.process.failed", &failure);
  } else {
    admit(durable, message->id, launch.key);
    durable = NULL;
  }
  free(durable);
  launch_free(&launch);
}

struct position {
  char *key;
  uint64_t out, err; // offsets
};

/** Reads the payload and finds the process by its key. NULL: the request was answered, or its payload is malformed. */
static struct durable *find(struct conn *conn, struct message *message, uint64_t offsets[2]) {
  static const struct field fields[] = {
      FIELD(struct position, key, field_string, true),
      {"stdout", field_uint, offsetof(struct position, out), true},
      {"stderr", field_uint, offsetof(struct position, err), true},
  };
  struct arena arena = {0};
  struct position position = {0};
  bool ok = read_fields(&message->payload, &arena, fields, COUNT(fields), &position);
  struct durable *durable = ok ? find_key(position.key) : NULL;
  message->payload.bad = !ok && message->id;
  if (ok && !durable) refuse(conn, message->id, "invalid_session", "no process has this key");
  arena_free(&arena);
  offsets[0] = position.out;
  offsets[1] = position.err;
  return durable;
}

void durable_attach(struct conn *conn, struct message *message) {
  uint64_t offsets[2];
  struct durable *durable = find(conn, message, offsets);
  if (!durable) return;
  for (int i = 0; i < 2; i++) {
    if (offsets[i] >= durable->rings[i].base && offsets[i] <= ring_end(&durable->rings[i])) continue;
    return refuse(conn, message->id, "invalid_payload", "the offset is below what was acknowledged or above what was produced");
  }
  for (int i = 0; i < 2; i++) {
    ring_forget(&durable->rings[i], offsets[i]);
    durable->rings[i].sent = offsets[i];
  }
  durable->is_attached = true;
  durable->has_told_exit = false;
  conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.process.attached");
  process_resume(&durable->process);
  task_queue(&durable->pump);
}

void durable_ack(struct conn *conn, struct message *message) {
  uint64_t offsets[2];
  struct durable *durable = find(conn, message, offsets);
  if (!durable) return;
  for (int i = 0; i < 2; i++) {
    if (offsets[i] > ring_end(&durable->rings[i])) return;
  }
  for (int i = 0; i < 2; i++) ring_forget(&durable->rings[i], offsets[i]);
  process_resume(&durable->process);
}

void durable_room(void) {
  for (struct list *node = durables.next; node != &durables; node = node->next) task_queue(&durable_at(node)->pump);
}

void durable_detach_all(void) {
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    durable_at(node)->is_attached = false;
    durable_at(node)->start_id = 0;
  }
}

static void write_state(struct writer *payload, const struct durable *durable) {
  process_state_write(payload, durable->key, &durable->process, process_reason(&durable->process), durable->rings, 0);
}

void durable_write_states(struct writer *payload) {
  size_t running = 0;
  for (struct list *node = durables.next; node != &durables; node = node->next) running += durable_at(node)->process.is_started;
  write_array(payload, running);
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    if (durable_at(node)->process.is_started) write_state(payload, durable_at(node));
  }
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
  if (durable->start_id && control()) failure_send(control(), durable->start_id, "svc.process.failed", failure);
  activity_count.processes--;
  process_free(process);
  task_cancel(&durable->pump);
  list_remove(&durable->all);
  for (int i = 0; i < 2; i++) ring_free(&durable->rings[i]);
  count--;
  free(durable);
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

// It has no writer of stdin: stdin is at its end from the start, or is a terminal.
static const struct process_owner owner = {started, failed, readable, finished, {0}};

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

/** Sends one piece of the unsent output; queues itself while there is more. */
static void pump(struct task *task) {
  struct durable *durable = containing(task, struct durable, pump);
  bool has_more = false;
  for (int i = 0; i < 2; i++) {
    struct conn *conn = control();
    if (!conn || !durable->is_attached || !conn_has_room(conn)) return; // durable_room or an attach continues
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
