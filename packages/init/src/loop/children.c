#include "loop/children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/loop.h"

enum { BUCKETS = 1024, REAPS_PER_TURN = 512 };

static struct child *table[BUCKETS];
static struct watch signals;
static struct task reap;
static void (*when_stopped)(void), (*when_none)(void);

static void on_signal(struct watch *, uint32_t events);
static void on_reap(struct task *);

void children_init(void (*stop)(void)) {
  sigset_t handled;
  when_stopped = stop;
  sigfillset(&handled);
  // All signals are blocked, so that none from the guest can interrupt or end PID 1; two of them are read from a signalfd.
  sigprocmask(SIG_SETMASK, &handled, NULL);
  signal(SIGPIPE, SIG_IGN);
  sigemptyset(&handled);
  sigaddset(&handled, SIGCHLD);
  sigaddset(&handled, SIGTERM);
  int fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0 || !watch_add(&signals, fd, EPOLLIN, on_signal)) abort();
  task_init(&reap, on_reap);
}

void signals_reset(void) {
  sigset_t none;
  signal(SIGPIPE, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

void child_add(struct child *child, pid_t pid, void (*exited)(struct child *, int status)) {
  struct child **bucket = &table[(unsigned)pid % BUCKETS];
  *child = (struct child){*bucket, pid, exited};
  *bucket = child;
}

void child_remove(struct child *child) {
  if (!child->pid) return;
  struct child **link = &table[(unsigned)child->pid % BUCKETS];
  while (*link && *link != child) link = &(*link)->next;
  if (*link) *link = child->next;
  child->pid = 0;
}

void children_when_none(void (*none)(void)) {
  when_none = none;
  task_queue(&reap);
}

static void on_signal(struct watch *watch, uint32_t events) {
  struct signalfd_siginfo info[16];
  (void)events;
  ssize_t got = read(watch->fd, info, sizeof info);
  for (ssize_t i = 0; i < got / (ssize_t)sizeof *info; i++) {
    // SIGTERM from inside (sender in our pid namespace) is ignored: only the runtime, outside, may stop us.
    if (info[i].ssi_signo == SIGTERM && info[i].ssi_pid == 0) when_stopped();
  }
  task_queue(&reap);
}

/**
 * Ctrl-Z at a program that leads its own terminal. It has no shell that could continue it, so Linux does not stop it; gVisor does,
 * and the terminal would hang.
 */
static void undo_stop(pid_t pid, int status) {
  if (WSTOPSIG(status) == SIGTSTP && getsid(pid) == pid) kill(pid, SIGCONT);
}

static void on_reap(struct task *task) {
  for (int i = 0; i < REAPS_PER_TURN; i++) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL);
    if (pid < 0 && errno == ECHILD && when_none) when_none();
    if (pid <= 0) return;
    if (WIFSTOPPED(status)) {
      undo_stop(pid, status);
      continue;
    }
    struct child *child = table[(unsigned)pid % BUCKETS];
    while (child && child->pid != pid) child = child->next;
    if (!child) continue;
    child_remove(child);
    child->exited(child, status);
  }
  task_queue(task);
}
