#include "watch/observer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "wire/failure.h"

struct list observers = {&observers, &observers};
static unsigned count;

static void on_room(struct session *);
static void on_gone(struct session *, enum conn_end);
static void on_pump(struct task *);
static void destroy(struct observer *);

static const struct session_kind kind = {on_room, on_gone};

struct observer *observer_open(struct conn *conn, uint32_t id, char *path, const struct observer_owner *owner) {
  struct observer *observer = calloc(1, sizeof *observer);
  if (!observer) return NULL;
  observer->owner = owner;
  observer->path = path;
  observer->events = writer_new();
  task_init(&observer->pump, on_pump);
  session_open(&observer->session, conn, id, &kind);
  list_append(&observers, &observer->all);
  count++;
  return observer;
}

unsigned observer_count(void) { return count; }

struct observer *observer_find(struct conn *conn, uint32_t id) {
  struct session *session = session_find(conn, id, &kind);
  return session ? containing(session, struct observer, session) : NULL;
}

void observer_stop(struct observer *observer) {
  observer->owner->over(observer);
  if (!observer->end_reason && !*observer->failure) observer->end_reason = "stopped";
  task_queue(&observer->pump);
}

void observer_refuse(struct conn *conn, uint32_t id, int error, const char *message) {
  struct writer payload = writer_new();
  write_map(&payload, 2);
  write_text_pair(&payload, "message", message);
  write_text_pair(&payload, "errno_name", error ? errno_name(error) : NULL);
  if (!conn_answer(conn, id, FLAG_TERMINAL, "svc.watch.failed", &payload)) conn_end(conn, CONN_LOST);
}

static void append_event(struct observer *observer, const char *type, const char *path, const char *kind_name, const char *from) {
  struct writer *events = &observer->events;
  size_t at = events->length, last = observer->last_event;
  write_map(events, 4);
  write_text_pair(events, "type", type);
  write_text_pair(events, "path", path);
  write_text_pair(events, "kind", kind_name);
  write_text_pair(events, "from", from);
  // Repeated changes of one file are reported once per message.
  bool is_same =
      observer->event_count && events->length - at == at - last && !memcmp(events->at + at, events->at + last, at - last);
  if (is_same && !events->failed) {
    events->length = at;
    return;
  }
  observer->last_event = at;
  observer->event_count++;
  task_queue(&observer->pump);
}

static bool is_over(const struct observer *observer) { return observer->end_reason || *observer->failure; }

void observer_tell(struct observer *observer, enum change change, const char *path, bool is_folder, const char *from) {
  static const char *const types[] = {"created", "modified", "removed", "renamed", "attributes"};
  if (observer->is_deaf || is_over(observer)) return;
  if (observer->events.length >= WATCH_PENDING_MAX) {
    observer_tell_overflow(observer);
    observer->is_deaf = true;
  } else if (path) {
    append_event(observer, types[change], path, is_folder ? "dir" : "file", from);
  } else {
    observer_fail(observer, ENAMETOOLONG, "watch: a path below the folder is longer than 4095 bytes");
  }
}

void observer_tell_overflow(struct observer *observer) {
  if (!observer->is_deaf && !is_over(observer)) append_event(observer, "overflow", "", NULL, NULL);
}

void observer_end(struct observer *observer, const char *reason) {
  if (is_over(observer)) return;
  if (!observer->is_deaf) append_event(observer, "removed", "", observer->is_folder ? "dir" : "file", NULL);
  observer->end_reason = reason;
  observer->owner->over(observer);
  task_queue(&observer->pump);
}

void observer_fail(struct observer *observer, int error, const char *message) {
  if (is_over(observer)) return;
  snprintf(observer->failure, sizeof observer->failure, "%s", message);
  observer->failure_errno = error;
  task_queue(&observer->pump);
}

void observer_scanned(struct observer *observer) {
  struct conn *conn = observer->session.conn;
  if (is_over(observer)) return;
  if (observer->wants_overflow) observer_tell_overflow(observer);
  observer->wants_overflow = false;
  if (observer->is_started) return;
  struct writer payload = writer_new();
  write_map(&payload, 2);
  write_text_pair(&payload, "path", observer->path);
  write_text_pair(&payload, "kind", observer->is_folder ? "dir" : "file");
  if (!conn_answer(conn, observer->session.id, 0, "svc.watch.started", &payload)) conn_end(conn, CONN_LOST);
  observer->is_started = true;
}

static void on_room(struct session *session) { task_queue(&containing(session, struct observer, session)->pump); }

static void on_gone(struct session *session, enum conn_end end) {
  (void)end;
  destroy(containing(session, struct observer, session));
}

static void send_events(struct observer *observer) {
  struct conn *conn = observer->session.conn;
  struct writer payload = writer_new();
  write_map(&payload, 1);
  write_text(&payload, "events");
  write_array(&payload, observer->event_count);
  write_raw(&payload, observer->events.at, observer->events.length);
  payload.failed |= observer->events.failed;
  if (!conn_answer(conn, observer->session.id, 0, "svc.watch.events", &payload)) conn_end(conn, CONN_LOST);
  writer_free(&observer->events);
  observer->event_count = observer->last_event = 0;
  observer->is_deaf = false;
}

static void on_pump(struct task *task) {
  struct observer *observer = containing(task, struct observer, pump);
  struct conn *conn = observer->session.conn;
  uint32_t id = observer->session.id;
  if (!conn_has_room(conn)) return; // on_room continues
  if (observer->event_count) send_events(observer);
  if (!is_over(observer)) return;
  if (*observer->failure) {
    observer_refuse(conn, id, observer->failure_errno, observer->failure);
  } else {
    struct writer payload = writer_new();
    write_map(&payload, 1);
    write_text_pair(&payload, "reason", observer->end_reason);
    if (!conn_answer(conn, id, FLAG_TERMINAL, "svc.watch.end", &payload)) conn_end(conn, CONN_LOST);
  }
  destroy(observer);
}

static void destroy(struct observer *observer) {
  const struct observer_owner *owner = observer->owner;
  owner->over(observer);
  conn_give_slot(observer->session.conn);
  session_close(&observer->session);
  task_cancel(&observer->pump);
  list_remove(&observer->all);
  writer_free(&observer->events);
  free(observer->path);
  free(observer);
  if (--count == 0) owner->none_left();
}
