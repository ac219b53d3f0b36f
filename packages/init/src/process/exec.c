#include "process/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"
#include "process/process.h"
#include "process/pty.h"
#include "process/shutdown-state.h"
#include "wire/activity.h"
#include "wire/session.h"

struct exec {
  struct session session;
  struct process process;
  uint32_t connection; // number of the connection it was started on
};

static struct list lost = {&lost, &lost}; // running, but their connection is gone

static void on_room(struct session *);
static void on_gone(struct session *, enum conn_end);

static const struct process_owner owner, no_owner; // below
static const struct session_kind kind = {on_room, on_gone};

void exec_request(struct conn *conn, struct message *message) {
  struct launch launch;
  struct failure failure;
  if (session_find(conn, message->id, NULL)) return conn_error(conn, message->id, "invalid_session", "this id is in use", NULL);
  struct exec *exec = calloc(1, sizeof *exec);
  if (!launch_read(&launch, &message->payload, LAUNCH_EXEC)) {
    message->payload.bad = true;
  } else if (shutdown_is_running()) {
    failure_set(&failure, "other", "start", 0, "the sandbox is shutting down");
    failure_send(conn, message->id, "core.exec.failed", &failure);
  } else if (!exec) {
    failure_set(&failure, "out_of_memory", "start", ENOMEM, "cannot start a process");
    failure_send(conn, message->id, "core.exec.failed", &failure);
  } else if (!process_start(&exec->process, &launch, &owner, &failure)) {
    failure_send(conn, message->id, "core.exec.failed", &failure);
  } else {
    exec->connection = conn->number;
    session_open(&exec->session, conn, message->id, &kind);
    activity_count.processes++;
    exec = NULL;
  }
  free(exec);
  launch_free(&launch);
}

static struct exec *find(struct conn *conn, uint32_t id) {
  struct session *session = session_find(conn, id, &kind);
  return session ? containing(session, struct exec, session) : NULL;
}

static void stdin_broken(struct sink *, int error);

void exec_stdin(struct conn *conn, struct message *message) {
  struct span data = {0};
  if (!message_data(message, &data)) return;
  struct exec *exec = find(conn, message->id);
  if (!exec) return; // ended meanwhile: late input is ignored
  struct sink *in = &exec->process.in;
  if (data.length == 0) return sink_end(in);
  if (in->is_ending) return;
  conn->untaken += data.length;
  if (sink_write(in, data.at, data.length, 0)) return;
  conn_taken(conn, data.length);
  sink_close(in);
  stdin_broken(in, ENOMEM);
}

void exec_signal(struct conn *conn, struct message *message) {
  struct order {
    int64_t signal;
    bool tree;
  } order = {.signal = -1};
  static const struct field fields[] = {FIELD(struct order, signal, field_int, true), FIELD(struct order, tree, field_bool, false)};
  struct arena none = {0};
  bool ok = read_fields(&message->payload, &none, fields, COUNT(fields), &order);
  if (!ok || order.signal < 0 || order.signal > SIGRTMAX) {
    message->payload.bad = true;
    return;
  }
  struct exec *exec = find(conn, message->id);
  if (exec && order.tree && order.signal == SIGKILL) process_kill(&exec->process);
  else if (exec) process_signal(&exec->process, (int)order.signal);
}

void exec_resize(struct conn *conn, struct message *message) {
  struct size {
    uint64_t rows, cols;
  } size = {0};
  static const struct field fields[] = {FIELD(struct size, rows, field_uint, true), FIELD(struct size, cols, field_uint, true)};
  struct arena none = {0};
  bool ok = read_fields(&message->payload, &none, fields, COUNT(fields), &size);
  if (!ok || size.rows > UINT16_MAX || size.cols > UINT16_MAX) {
    message->payload.bad = true;
    return;
  }
  struct exec *exec = find(conn, message->id);
  if (exec && exec->process.tty) pty_resize(exec->process.outlets[0].watch.fd, (unsigned)size.rows, (unsigned)size.cols);
}

void exec_drop(uint32_t connection) {
  for (struct list *node = lost.next; node != &lost; node = node->next) {
    struct process *process = containing(node, struct process, owned);
    if (containing(process, struct exec, process)->connection == connection) process_signal(process, SIGKILL);
  }
}

static struct exec *exec_of(struct process *process) { return containing(process, struct exec, process); }

static void destroy(struct exec *exec) {
  process_free(&exec->process);
  if (exec->session.conn) session_close(&exec->session);
  activity_count.processes--;
  activity();
  free(exec);
}

static void started(struct process *process) {
  struct session *session = &exec_of(process)->session;
  struct writer payload = writer_new();
  write_map(&payload, 1);
  write_uint_pair(&payload, "pid", (uint64_t)process->pid);
  activity();
  if (!conn_answer(session->conn, session->id, 0, "core.exec.started", &payload)) conn_end(session->conn, CONN_LOST);
}

static void failed(struct process *process, const struct failure *failure) {
  struct exec *exec = exec_of(process);
  failure_send(exec->session.conn, exec->session.id, "core.exec.failed", failure);
  destroy(exec);
}

static ssize_t readable(struct process *process, int stream, int fd) {
  struct session *session = &exec_of(process)->session;
  if (!conn_has_room(session->conn)) return errno = EBUSY, -1;
  ssize_t got = read(fd, scratch(), OUTPUT_CHUNK);
  if (got <= 0) return got;
  activity();
  conn_send_data(session->conn, session->id, stream ? "core.exec.stderr" : "core.exec.stdout", scratch(), (size_t)got);
  return got;
}

/** What ended with everything else ended for the reason that everything did. */
static const char *reason_of(const struct process *process) {
  int signal = process_signal_number(process);
  bool was_shut_down = (signal == SIGTERM || signal == SIGKILL) && !process->was_oom && !process->was_timed_out;
  return was_shut_down && shutdown_reason() ? shutdown_reason() : process_reason(process);
}

static void finished(struct process *process) {
  struct exec *exec = exec_of(process);
  struct conn *conn = exec->session.conn;
  struct writer payload = writer_new();
  write_map(&payload, 3);
  write_int_pair(&payload, "code", process_code(process));
  write_text(&payload, "signal");
  if (process_signal_number(process)) write_int(&payload, process_signal_number(process));
  else write_null(&payload);
  write_text_pair(&payload, "reason", reason_of(process));
  if (!conn_answer(conn, exec->session.id, FLAG_TERMINAL, "core.exec.exited", &payload)) conn_end(conn, CONN_LOST);
  destroy(exec);
}

static struct exec *exec_of_stdin(struct sink *sink) { return exec_of(containing(sink, struct process, in)); }

static void stdin_taken(struct sink *sink, size_t bytes, uint32_t tag, bool is_last) {
  (void)tag, (void)is_last;
  struct conn *conn = exec_of_stdin(sink)->session.conn;
  if (conn) conn_taken(conn, bytes);
}

static void stdin_broken(struct sink *sink, int error) {
  struct session *session = &exec_of_stdin(sink)->session;
  struct writer payload = writer_new();
  write_map(&payload, 3);
  write_int_pair(&payload, "errno", error);
  write_text_pair(&payload, "errno_name", errno_name(error));
  write_text_pair(&payload, "message", strerror(error));
  if (!conn_answer(session->conn, session->id, 0, "core.exec.stdin.error", &payload)) conn_end(session->conn, CONN_LOST);
}

static void on_room(struct session *session) { process_resume(&containing(session, struct exec, session)->process); }

static void on_gone(struct session *session, enum conn_end end) {
  struct exec *exec = containing(session, struct exec, session);
  struct process *process = &exec->process;
  sink_close(&process->in);
  session_close(session);
  process_set_owner(process, &no_owner);
  list_append(&lost, &process->owned);
  if (end == CONN_LEFT) process_signal(process, SIGKILL);
  process_resume(process);
}

static void lost_failed(struct process *process, const struct failure *failure) {
  (void)failure;
  destroy(exec_of(process));
}

static ssize_t lost_readable(struct process *process, int stream, int fd) {
  (void)process, (void)stream;
  return read(fd, scratch(), OUTPUT_CHUNK);
}

static void lost_finished(struct process *process) { destroy(exec_of(process)); }

static const struct process_owner owner = {started, failed, readable, finished, {stdin_taken, stdin_broken, process_stdin_ended}};
static const struct process_owner no_owner = {NULL, lost_failed, lost_readable, lost_finished, {NULL, NULL, process_stdin_ended}};
