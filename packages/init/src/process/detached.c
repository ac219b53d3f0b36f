#include "process/detached.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "process/detached-input.h"
#include "process/detached-process.h"
#include "process/detached-reading.h"
#include "process/pty.h"
#include "process/shutdown-state.h"
#include "wire/activity.h"

struct named {
  char *key, *by, *write;
  uint64_t out, err; // offsets; UINT64_MAX: the stream is not wanted
  bool follow;
  struct span data;
  int64_t signal;
  uint64_t rows, cols, offset, timeout_ms;
};

static const struct field key_only[] = {FIELD(struct named, key, field_string, true)};
static const struct field with_offsets[] = {
    FIELD(struct named, key, field_string, true),
    {"stdout", field_uint, offsetof(struct named, out), false},
    {"stderr", field_uint, offsetof(struct named, err), false},
    FIELD(struct named, follow, field_bool, false),
};
static const struct field with_data[] = {
    FIELD(struct named, key, field_string, true),
    FIELD(struct named, data, field_bytes, true),
    FIELD(struct named, write, field_string, false),
    FIELD(struct named, offset, field_uint, false),
};
static const struct field with_write[] = {FIELD(struct named, key, field_string, true),
                                          FIELD(struct named, write, field_string, true)};
static const struct field with_timeout[] = {
    FIELD(struct named, key, field_string, true),
    FIELD(struct named, timeout_ms, field_uint, true),
};
static const struct field with_signal[] = {
    FIELD(struct named, key, field_string, true),
    FIELD(struct named, signal, field_int, true),
    FIELD(struct named, by, field_string, false),
};
static const struct field with_size[] = {
    FIELD(struct named, key, field_string, true),
    FIELD(struct named, rows, field_uint, true),
    FIELD(struct named, cols, field_uint, true),
};

static struct detached *find_key(const char *key) {
  for (struct list *node = detacheds.next; node != &detacheds; node = node->next) {
    struct detached *detached = containing(node, struct detached, all);
    if (!strcmp(detached->key, key)) return detached;
  }
  return NULL;
}

static void refuse(struct conn *conn, struct message *message, const char *kind, const char *text) {
  conn_error(conn, message->id, kind, text, NULL);
}

/** Reads the payload and finds the process by its key. NULL: the request was answered, or its payload is malformed. */
static struct detached *find(struct conn *conn, struct message *message, struct arena *arena, const struct field *fields, size_t n,
                             struct named *named) {
  *named = (struct named){.out = UINT64_MAX, .err = UINT64_MAX};
  if (session_find(conn, message->id, NULL)) return refuse(conn, message, "invalid_session", "this id is in use"), NULL;
  if (!read_fields(&message->payload, arena, fields, n, named)) return message->payload.bad = true, NULL;
  struct detached *detached = find_key(named->key);
  if (!detached || detached->is_leaving) return refuse(conn, message, "invalid_session", "no process has this key"), NULL;
  return detached;
}

/** When the table is full, the oldest process that has ended is removed. */
static void forget_oldest(void) {
  if (detached_count < DETACHED_MAX) return;
  for (struct list *node = detacheds.next; node != &detacheds; node = node->next) {
    struct detached *detached = containing(node, struct detached, all);
    if (detached->process.is_finished && list_is_empty(&detached->readings)) return detached_destroy(detached);
  }
}

static void on_unread(struct timer *timer) {
  struct detached *detached = containing(timer, struct detached, unread_timer);
  readings_leave_behind(detached);
  detached_taken(detached);
}

static void admit(struct detached *detached, struct conn *conn, uint32_t id, const struct launch *launch) {
  strcpy(detached->key, launch->key); // at most KEY_MAX, checked by launch_read
  detached->output_max = launch->output_max;
  detached->is_spare = launch->spare;
  detached->process.explains_failure = true;
  list_init(&detached->readings);
  timer_init(&detached->unread_timer, on_unread);
  for (int i = 0; i < 2; i++) detached->rings[i].limit = (size_t)launch->ring_bytes;
  session_open(&detached->starting, conn, id, &detached_request);
  list_append(&detacheds, &detached->all);
  detached_count++;
  activity_count.processes += !detached->is_spare;
}

/** It was started before, by a request whose answer may have been lost: reports the state of that process. */
static void join_start(struct detached *detached, struct conn *conn, struct message *message) {
  if (detached->starting.conn) return refuse(conn, message, "resource_limit", "it is being started; try again");
  session_open(&detached->starting, conn, message->id, &detached_request);
  if (detached->process.is_started) detached_tell_start(detached);
}

void detached_start(struct conn *conn, struct message *message) {
  struct launch launch;
  struct failure failure;
  struct detached *detached = NULL;
  bool ok = launch_read(&launch, &message->payload, LAUNCH_DETACHED);
  struct detached *known = ok ? find_key(launch.key) : NULL;
  if (!ok) message->payload.bad = true;
  else if (!known) forget_oldest();
  if (!ok) {
    // Answered by the dispatcher.
  } else if (session_find(conn, message->id, NULL)) {
    refuse(conn, message, "invalid_session", "this id is in use");
  } else if (known && launch.repeat && !known->is_leaving) {
    join_start(known, conn, message);
  } else if (known) {
    refuse(conn, message, "invalid_session", "a process with this key exists; forget it first");
  } else if (shutdown_is_running() || detached_count >= DETACHED_MAX || !(detached = calloc(1, sizeof *detached))) {
    failure_set(&failure, shutdown_is_running() ? "other" : "resource_limit", "start", 0,
                shutdown_is_running() ? "the sandbox is shutting down" : "1024 detached processes run already; end some first");
    failure_send(conn, message->id, "svc.detached.failed", &failure);
  } else if (!process_start(&detached->process, &launch, &detached_owner, &failure)) {
    failure_send(conn, message->id, "svc.detached.failed", &failure);
  } else {
    admit(detached, conn, message->id, &launch);
    detached = NULL;
  }
  free(detached);
  launch_free(&launch);
}

/** A spare process that is being ended cannot be found any more. */
static bool is_listed(const struct detached *detached) {
  return detached->process.is_started && !(detached->is_spare && detached->is_leaving);
}

void detached_list(struct conn *conn, struct message *message) {
  struct writer payload = writer_new();
  size_t count = 0;
  for (struct list *node = detacheds.next; node != &detacheds; node = node->next) {
    count += is_listed(containing(node, struct detached, all));
  }
  write_map(&payload, 1);
  write_text(&payload, "processes");
  write_array(&payload, count);
  for (struct list *node = detacheds.next; node != &detacheds; node = node->next) {
    struct detached *detached = containing(node, struct detached, all);
    if (is_listed(detached)) detached_write_state(&payload, detached);
  }
  if (!conn_answer(conn, message->id, FLAG_TERMINAL, "svc.detached.listed", &payload)) conn_end(conn, CONN_LOST);
}

void detached_read(struct conn *conn, struct message *message) {
  struct arena arena = {0};
  struct named named;
  struct detached *detached = find(conn, message, &arena, with_offsets, COUNT(with_offsets), &named);
  const uint64_t offsets[2] = {named.out, named.err};
  bool is_ahead = false;
  for (int i = 0; detached && i < 2; i++) is_ahead |= offsets[i] != UINT64_MAX && offsets[i] > ring_end(&detached->rings[i]);
  if (is_ahead) refuse(conn, message, "invalid_payload", "the offset is above what was produced");
  else if (detached && !reading_start(detached, conn, message->id, offsets, named.follow)) {
    refuse(conn, message, "resource_limit", "too much is open on this connection; close some of it first");
  }
  arena_free(&arena);
}

void detached_stdin(struct conn *conn, struct message *message) {
  struct arena arena = {0};
  struct named named;
  struct detached *detached = find(conn, message, &arena, with_data, COUNT(with_data), &named);
  const struct detached_input input = {named.write, named.offset, named.data};
  if (detached) detached_use(detached);
  if (detached) detached_write(detached, conn, message->id, &input);
  arena_free(&arena);
}

void detached_signal(struct conn *conn, struct message *message) {
  struct arena arena = {0};
  struct named named;
  struct detached *detached = find(conn, message, &arena, with_signal, COUNT(with_signal), &named);
  bool is_signal = named.signal >= 0 && named.signal <= SIGRTMAX && (!named.by || strlen(named.by) <= KEY_MAX);
  int error = detached && is_signal ? process_signal(&detached->process, (int)named.signal) : 0;
  if (detached && !is_signal) refuse(conn, message, "invalid_payload", "no such signal, or too long a name");
  else if (error) refuse(conn, message, "invalid_session", error == ESRCH ? "the process has exited" : strerror(error));
  else if (detached) {
    if (named.signal) detached->by_signal = (int)named.signal, strcpy(detached->by, named.by ? named.by : "");
    conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.detached.done");
  }
  arena_free(&arena);
}

void detached_resize(struct conn *conn, struct message *message) {
  struct arena arena = {0};
  struct named named;
  struct detached *detached = find(conn, message, &arena, with_size, COUNT(with_size), &named);
  int terminal = detached && detached->process.tty ? detached->process.outlets[0].watch.fd : -1;
  if (detached && (terminal < 0 || named.rows > UINT16_MAX || named.cols > UINT16_MAX)) {
    refuse(conn, message, "invalid_session", "the process has no such terminal");
  } else if (detached) {
    pty_resize(terminal, (unsigned)named.rows, (unsigned)named.cols);
    conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.detached.done");
  }
  arena_free(&arena);
}

void detached_forget(struct conn *conn, struct message *message) {
  struct arena arena = {0};
  struct named named;
  struct detached *detached = find(conn, message, &arena, key_only, COUNT(key_only), &named);
  if (detached && detached->process.is_finished) {
    detached_destroy(detached);
    conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.detached.done");
  } else if (detached) {
    detached->is_leaving = true;
    readings_end(detached);
    detached_taken(detached);
    session_open(&detached->forgetting, conn, message->id, &detached_request);
    process_kill(&detached->process);
  }
  arena_free(&arena);
}

void detached_end_spares(void) {
  for (struct list *node = detacheds.next, *next; node != &detacheds; node = next) {
    struct detached *detached = containing(node, struct detached, all);
    next = node->next;
    if (!detached->is_spare || detached->is_leaving) continue;
    if (detached->process.is_finished) {
      detached_destroy(detached);
      continue;
    }
    detached->is_leaving = true;
    readings_end(detached);
    process_kill(&detached->process);
  }
}

void detached_recall(struct conn *conn, struct message *message) {
  struct arena arena = {0};
  struct named named;
  struct detached *detached = find(conn, message, &arena, with_write, COUNT(with_write), &named);
  if (detached) detached_recall_write(detached, conn, message->id, named.write);
  arena_free(&arena);
}

void detached_timeout(struct conn *conn, struct message *message) {
  struct arena arena = {0};
  struct named named;
  struct detached *detached = find(conn, message, &arena, with_timeout, COUNT(with_timeout), &named);
  if (detached && detached->process.is_reaped) refuse(conn, message, "invalid_session", "the process has exited");
  else if (detached) {
    process_set_timeout(&detached->process, named.timeout_ms);
    conn_answer_empty(conn, message->id, FLAG_TERMINAL, "svc.detached.done");
  }
  arena_free(&arena);
}

unsigned detached_count_spares(void) {
  unsigned count = 0;
  for (struct list *node = detacheds.next; node != &detacheds; node = node->next) {
    const struct detached *detached = containing(node, struct detached, all);
    count += detached->is_spare && detached->process.is_started && !detached->process.is_finished;
  }
  return count;
}
