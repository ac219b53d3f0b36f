#include "durable.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activity.h"
#include "control.h"
#include "durable-process.h"
#include "limits.h"
#include "shutdown.h"

struct list durables = {&durables, &durables};
static unsigned count;

struct named {
  char *key;
  uint64_t out, err; // offsets
  struct span data;
  int64_t signal;
  uint64_t rows, cols;
};

static const struct field key_only[] = {FIELD(struct named, key, field_string, true)};
static const struct field with_offsets[] = {
    FIELD(struct named, key, field_string, true),
    {"stdout", field_uint, offsetof(struct named, out), true},
    {"stderr", field_uint, offsetof(struct named, err), true},
};
static const struct field with_data[] = {FIELD(struct named, key, field_string, true), FIELD(struct named, data, field_bytes, true)};
static const struct field with_signal[] = {FIELD(struct named, key, field_string, true), FIELD(struct named, signal, field_int, true)};
static const struct field with_size[] = {
    FIELD(struct named, key, field_string, true),
    FIELD(struct named, rows, field_uint, true),
    FIELD(struct named, cols, field_uint, true),
};

static struct durable *find_key(const char *key) {
  for (struct list *node = durables.next; node != &durables; node = node->next) {
    struct durable *durable = containing(node, struct durable, all);
    if (!strcmp(durable->key, key)) return durable;
  }
  return NULL;
}

static void refuse(struct conn *conn, uint32_t id, const char *kind, const char *message) {
  if (id) conn_error(conn, id, kind, message, NULL); // id 0 is a notification: nobody waits for an answer
}

/** Reads the payload and finds the process it names. NULL: the request was answered. */
static struct durable *find(struct conn *conn, struct message *message, const struct field *fields, size_t n, struct named *named) {
  struct arena arena = {0};
  struct durable *durable = NULL;
  *named = (struct named){0};
  bool ok = read_fields(&message->payload, &arena, fields, n, named);
  if (ok) durable = find_key(named->key);
  message->payload.bad = !ok && message->id;
  if (ok && !durable) refuse(conn, message->id, "invalid_session", "no process has this key");
  arena_free(&arena);
  named->key = NULL;
  return durable;
}

static void send_failed(struct conn *conn, uint32_t id, const struct failure *failure) {
  struct writer payload = writer_new();
  write_map(&payload, 5);
  failure_write(&payload, failure);
  if (!conn_answer(conn, id, FLAG_TERMINAL, "svc.process.failed", &payload)) conn_end(conn, CONN_LOST);
}

void durable_start(struct conn *conn, struct message *message) {
  struct launch launch;
  struct failure failure;
  struct durable *durable = NULL;
  bool ok = launch_read(&launch, &message->payload, LAUNCH_DURABLE);
  if (!ok) {
    message->payload.bad = true;
  } else if (find_key(launch.key)) {
    refuse(conn, message->id, "invalid_session", "a process with this key exists; forget it first");
  } else if (shutdown_is_running() || count >= DURABLE_MAX || !(durable = calloc(1, sizeof *durable))) {
    failure_set(&failure, shutdown_is_running() ? "other" : "resource_limit", "start", 0,
                shutdown_is_running() ? "the sandbox is shutting down" : "too many processes; forget those that exited");
    send_failed(conn, message->id, &failure);
  } else if (!process_start(&durable->process, &launch, &durable_owner, &failure)) {
    send_failed(conn, message->id, &failure);
  } else {
    strcpy(durable->key, launch.key); // at most KEY_MAX, checked by launch_read
    durable->start_id = message->id;
    durable->is_attached = true;
    task_init(&durable->pump, durable_pump);
    for (int i = 0; i < 2; i++) durable->rings[i].limit = DURABLE_RING;
    list_append(&durables, &durable->all);
    count++;
    activity_count.processes++;
    durable = NULL;
  }
  free(durable);
  launch_free(&launch);
}

void durable_destroy(struct durable *durable) {
  if (!durable->process.is_finished) activity_count.processes--;
  process_free(&durable->process);
  task_cancel(&durable->pump);
  list_remove(&durable->all);
  for (int i = 0; i < 2; i++) ring_free(&durable->rings[i]);
  count--;
  free(durable);
}

void durable_attach(struct conn *conn, struct message *message) {
  struct named named;
  struct durable *durable = find(conn, message, with_offsets, COUNT(with_offsets), &named);
  if (!durable) return;
  const uint64_t offsets[2] = {named.out, named.err};
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
  struct named named;
  struct durable *durable = find(conn, message, with_offsets, COUNT(with_offsets), &named);
  if (!durable || named.out > ring_end(&durable->rings[0]) || named.err > ring_end(&durable->rings[1])) return;
  ring_forget(&durable->rings[0], named.out);
  ring_forget(&durable->rings[1], named.err);
  process_resume(&durable->process);
}

void durable_forget(struct conn *conn, struct message *message) {
  struct named named;
  struct durable *durable = find(conn, message, key_only, COUNT(key_only), &named);
  if (!durable) return;
  if (!durable->process.is_finished) return refuse(conn, message->id, "invalid_session", "the process is running; end it first");
  durable_destroy(durable);
  conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.process.forgotten");
}

void durable_stdin(struct conn *conn, struct message *message) {
  struct named named;
  struct durable *durable = find(conn, message, with_data, COUNT(with_data), &named);
  if (!durable) return;
  struct sink *in = &durable->process.in;
  if (!sink_is_open(in) || in->is_ending) return refuse(conn, message->id, "invalid_session", "stdin is closed");
  if (!named.data.length) {
    durable->end_id = message->id;
    return sink_end(in);
  }
  if (durable_stdin_waiting + named.data.length > DURABLE_STDIN_MAX) {
    return refuse(conn, message->id, "resource_limit", "too much input waits to be read; wait for svc.process.stdin.done");
  }
  durable_stdin_waiting += named.data.length;
  if (sink_write(in, named.data.at, named.data.length, message->id)) return;
  durable_stdin_waiting -= named.data.length;
  refuse(conn, message->id, "resource_limit", "out of memory");
}

void durable_signal(struct conn *conn, struct message *message) {
  struct named named;
  struct durable *durable = find(conn, message, with_signal, COUNT(with_signal), &named);
  if (!durable) return;
  if (named.signal < 0 || named.signal > SIGRTMAX) return refuse(conn, message->id, "invalid_payload", "no such signal");
  int error = process_signal(&durable->process, (int)named.signal);
  if (error) return refuse(conn, message->id, "invalid_session", error == ESRCH ? "the process has exited" : strerror(error));
  conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.process.signalled");
}

void durable_resize(struct conn *conn, struct message *message) {
  struct named named;
  struct durable *durable = find(conn, message, with_size, COUNT(with_size), &named);
  if (!durable) return;
  bool ok = named.rows <= UINT16_MAX && named.cols <= UINT16_MAX;
  if (!ok || !durable->process.tty) return refuse(conn, message->id, "invalid_session", "the process has no such terminal");
  pty_resize(durable->process.outlets[0].watch.fd, (unsigned)named.rows, (unsigned)named.cols);
  conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.process.resized");
}
