#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bounds.h"
#include "loop/discard.h"
#include "process/tree-kill.h"
#include "wire/control-link.h"

static struct list processes = {&processes, &processes};
static unsigned process_count;

static void on_error_pipe(struct watch *, uint32_t events);
static void on_readable(struct watch *, uint32_t events);
static void on_exit(struct child *, int status);
static void on_quiet(struct timer *);
static void on_timeout(struct timer *);
static void settle(struct process *);
static void finish(struct process *);

bool process_start(struct process *process, struct launch *launch, const struct process_owner *owner, struct failure *failure) {
  struct spawned spawned;
  if (process_count >= PROCESSES_MAX) {
    return failure_set(failure, "resource_limit", "table", 0, "4096 processes run already; end some first"), false;
  }
  if (!spawn(launch, &spawned, failure)) return false;
  *process = (struct process){.owner = owner,
                              .pid = spawned.pid,
                              .mark = spawned.mark,
                              .stack = spawned.stack,
                              .tty = launch->tty,
                              .started_ns = unix_ns()};
  child_add(&process->child, spawned.pid, on_exit);
  list_append(&processes, &process->all);
  list_init(&process->owned);
  process_count++;
  timer_init(&process->quiet, on_quiet);
  timer_init(&process->timeout, on_timeout);
  process_set_timeout(process, launch->timeout_ms);
  // A terminal is one descriptor for both directions; each watch needs its own.
  if (launch->tty) spawned.in = fcntl(spawned.in, F_DUPFD_CLOEXEC, 3);
  bool ok = !launch->tty || spawned.in >= 0;
  if (!watch_add(&process->error, spawned.error, EPOLLIN, on_error_pipe)) {
    spawn_stack_release(process->stack, spawned.error);
    process->stack = NULL;
    ok = false;
  }
  ok = sink_open(&process->in, spawned.in, &owner->stdin) && ok;
  for (int i = 0; i < 2; i++) {
    struct outlet *outlet = &process->outlets[i];
    *outlet = (struct outlet){.watch.fd = -1, .process = process};
    if (spawned.output[i] < 0) continue;
    if (watch_add(&outlet->watch, spawned.output[i], 0, on_readable)) continue;
    close(spawned.output[i]);
    ok = false;
  }
  if (ok) return true;
  kill(spawned.pid, SIGKILL);
  failure_set(failure, "resource_limit", "watch", ENOMEM, "cannot watch the process");
  process_free(process);
  return false;
}

void process_set_owner(struct process *process, const struct process_owner *owner) {
  process->owner = owner;
  process->in.owner = &owner->stdin;
}

int process_signal(struct process *process, int signal) {
  if (process->is_reaped) return ESRCH;
  if (signal == SIGKILL) process->was_killed = true;
  // SAFETY: not reaped, so the pid is still this process's own, and so is the group that it leads. Between fork and
  // setsid the group does not exist yet; the process itself does.
  if (kill(-process->pid, signal) == 0 || kill(process->pid, signal) == 0) return 0;
  return errno;
}

int process_kill(struct process *process) {
  int error = process_signal(process, SIGKILL);
  if (!error) tree_kill(process->mark);
  return error;
}

void process_set_timeout(struct process *process, uint64_t timeout_ms) {
  if (process->is_reaped) return; // the timer has another use now
  timer_stop(&process->timeout);
  if (timeout_ms) timer_start(&process->timeout, timeout_ms);
}

void process_stdin_ended(struct sink *sink) {
  if (!containing(sink, struct process, in)->tty) sink_close(sink);
  else sink->is_ending = false;
}

void process_resume(struct process *process) {
  if (!process->is_started) return;
  for (int i = 0; i < 2; i++) watch_want(&process->outlets[i].watch, EPOLLIN);
  // The program may have ended meanwhile with an empty pipe, and gVisor sends no hang-up: wait for silence again.
  if (process->tty && process->outlets[0].watch.fd >= 0) settle(process);
}

void process_free(struct process *process) {
  child_remove(&process->child);
  list_remove(&process->all);
  list_remove(&process->owned);
  timer_stop(&process->quiet);
  timer_stop(&process->timeout);
  spawn_stack_release(process->stack, watch_release(&process->error));
  process->stack = NULL;
  sink_close(&process->in);
  for (int i = 0; i < 2; i++) discard(watch_release(&process->outlets[i].watch));
  process_count--;
}

const char *process_reason(const struct process *process) {
  if (process->was_timed_out) return "timeout";
  if (!WIFSIGNALED(process->status)) return "exit";
  return process->was_oom ? "oom" : "signal";
}

int process_signal_number(const struct process *process) { return WIFSIGNALED(process->status) ? WTERMSIG(process->status) : 0; }
int process_code(const struct process *process) { return WIFEXITED(process->status) ? WEXITSTATUS(process->status) : -1; }

void process_explained(uint32_t question, bool is_oom, bool is_pids) {
  for (struct list *node = processes.next; node != &processes; node = node->next) {
    struct process *process = containing(node, struct process, all);
    if (!process->question || process->question != question) continue;
    process->question = 0;
    process->was_oom = is_oom;
    process->was_pids = is_pids;
    timer_stop(&process->timeout);
    return settle(process);
  }
}

void process_expect_kill(void) {
  for (struct list *node = processes.next; node != &processes; node = node->next) {
    containing(node, struct process, all)->was_killed = true;
  }
}

/** The result of the start arrived: an error record, or EOF because exec closed the pipe. */
static void on_error_pipe(struct watch *watch, uint32_t events) {
  struct process *process = containing(watch, struct process, error);
  struct failure failure;
  (void)events;
  ssize_t got = read(watch->fd, &failure, sizeof failure);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  spawn_stack_release(process->stack, watch_release(watch));
  process->stack = NULL;
  if (got == (ssize_t)sizeof failure) {
    failure.kind[sizeof failure.kind - 1] = failure.stage[sizeof failure.stage - 1] = 0;
    failure.message[sizeof failure.message - 1] = 0;
    return process->owner->failed(process, &failure);
  }
  process->is_started = true;
  if (process->owner->started) process->owner->started(process);
  process_resume(process);
  settle(process);
}

static void on_readable(struct watch *watch, uint32_t events) {
  struct outlet *outlet = containing(watch, struct outlet, watch);
  struct process *process = outlet->process;
  (void)events;
  if (!process->is_started) return;
  ssize_t got = process->owner->readable(process, outlet == &process->outlets[1], watch->fd);
  if (got < 0 && errno == EBUSY) return watch_want(watch, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) watch_close(watch); // EIO: no process has the terminal open
  else outlet->owed -= (size_t)got < outlet->owed ? (size_t)got : outlet->owed;
  if (!process->is_reaped) return;
  if (got > 0) timer_stop(&process->quiet);
  settle(process);
}

static void on_exit(struct child *child, int status) {
  struct process *process = containing(child, struct process, child);
  process->is_reaped = true;
  process->status = status;
  process->exited_ns = unix_ns();
  timer_stop(&process->timeout);
  for (int i = 0; i < 2; i++) {
    int waiting = 0;
    struct outlet *outlet = &process->outlets[i];
    if (outlet->watch.fd >= 0 && !process->tty && !ioctl(outlet->watch.fd, FIONREAD, &waiting)) outlet->owed = (size_t)waiting;
  }
  if (process_signal_number(process) == SIGKILL && !process->was_killed)
    process->question = control_ask("svc.killed", process->pid);
  else if (process->explains_failure && process_code(process) > 0) process->question = control_ask("svc.failed", process->pid);
  if (process->question) timer_start(&process->timeout, KILLED_ANSWER_MS);
  if (process->error.fd >= 0) return on_error_pipe(&process->error, EPOLLIN);
  settle(process);
}

/** Finishes the process once it is reaped, its output is delivered, and the engine has answered why it was killed. */
static void settle(struct process *process) {
  if (!process->is_reaped || !process->is_started || process->is_finished || process->question) return;
  bool is_open = false, is_owed = false;
  for (int i = 0; i < 2; i++) {
    is_open |= process->outlets[i].watch.fd >= 0;
    is_owed |= process->outlets[i].watch.fd >= 0 && process->outlets[i].owed;
  }
  if (!is_open) return finish(process);
  if (is_owed || timer_is_running(&process->quiet)) return;
  // A background child still holds the pipe or the runtime sends no hang-up: wait for silence, within a limit.
  uint64_t now = now_ms(), quiet = process->tty ? QUIET_PTY_MS : QUIET_PIPE_MS;
  if (!process->quiet_until_ms) process->quiet_until_ms = now + QUIET_TOTAL_MS;
  uint64_t left = process->quiet_until_ms > now ? process->quiet_until_ms - now : 0;
  timer_start(&process->quiet, quiet < left ? quiet : left);
}

/**
 * The kernel moves bytes written to a terminal asynchronously, and only reading speeds it up; the client may have had no
 * room until now. So the output is complete only when a read finds nothing. For a pipe the number of remaining bytes is known.
 */
static void on_quiet(struct timer *timer) {
  struct process *process = containing(timer, struct process, quiet);
  struct watch *terminal = &process->outlets[0].watch;
  if (!process->tty || terminal->fd < 0) return finish(process);
  ssize_t got = process->owner->readable(process, 0, terminal->fd);
  if (got < 0 && errno == EBUSY) {
    process->quiet_until_ms = 0; // restarts when the client reads again
    return watch_want(terminal, 0);
  }
  if (got > 0 && now_ms() < process->quiet_until_ms) return settle(process);
  finish(process);
}

static void on_timeout(struct timer *timer) {
  struct process *process = containing(timer, struct process, timeout);
  if (process->question) { // the engine's answer is late
    process->question = 0;
    return settle(process);
  }
  process->was_timed_out = process_kill(process) == 0;
}

static void finish(struct process *process) {
  if (process->is_finished) return;
  process->is_finished = true;
  timer_stop(&process->quiet);
  sink_close(&process->in);
  // A background child may still write: its pipe is drained, or the child would block or die of SIGPIPE.
  for (int i = 0; i < 2; i++) discard(watch_release(&process->outlets[i].watch));
  process->owner->finished(process);
}
