#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/descriptors.h"
#include "process/child.h"
#include "process/config.h"
#include "process/environment.h"
#include "process/pty.h"
#include "process/spawn-stack.h"
#include "process/tree-kill.h"
#include "process/users.h"

enum { PIPE_BYTES = 1024 * 1024 };

static struct rlimit own_limits[RLIM_NLIMITS];

static bool is_rss_limited(const struct launch *);
static const char *unkept_of(const struct launch *);
static bool prepare(struct plan *, struct failure *);
static bool open_stdio(struct plan *, struct spawned *, struct failure *);
static void close_all(const int *fds, size_t count);

void spawn_init(void) {
  for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit((__rlimit_resource_t)i, &own_limits[i]);
  descriptors_init();
}

bool spawn(struct launch *launch, struct spawned *spawned, struct failure *failure) {
  struct plan plan = {.launch = *launch, .own_limits = own_limits, .stdio = {-1, -1, -1}, .error = -1};
  *spawned = (struct spawned){.error = -1, .in = -1, .output = {-1, -1}};
  bool ok = prepare(&plan, failure);
  launch->arena = plan.launch.arena;
  if (!ok) return false;
  spawned->mark = plan.mark = is_rss_limited(launch) ? 0 : tree_mark_new(own_limits[RLIMIT_RSS].rlim_max);
  ok = open_stdio(&plan, spawned, failure);
  if (ok) {
    spawned->stack = spawn_stack_take();
    pid_t pid = spawned->stack ? spawn_stack_start(spawned->stack, &plan, &launch->arena) : fork();
    if (pid == 0) child_run(&plan);
    spawned->pid = pid;
    ok = pid > 0;
    if (!ok) failure_set(failure, errno == ENOMEM ? "out_of_memory" : "resource_limit", "fork", errno, "cannot start a process");
  }
  close_all(plan.stdio, plan.stdio[1] == plan.stdio[0] ? 1 : 3);
  close_all(&plan.error, 1);
  if (ok) return true;
  bool is_shared = spawned->output[0] == spawned->in; // a terminal
  close_all((int[]){spawned->error, spawned->in, is_shared ? -1 : spawned->output[0], spawned->output[1]}, 4);
  return false;
}

/** An explicit limit replaces the mark. */
static bool is_rss_limited(const struct launch *launch) {
  bool is_limited = false;
  for (size_t i = 0; i < config.rlimits.count; i++) is_limited |= config.rlimits.at[i].resource == RLIMIT_RSS;
  for (size_t i = 0; i < launch->rlimits.count; i++) is_limited |= launch->rlimits.at[i].resource == RLIMIT_RSS;
  return is_limited;
}

/** The name of a limit that would be accepted but not enforced; NULL: there is none. */
static const char *unkept_of(const struct launch *launch) {
  for (size_t k = 0; k < config.unkept.count; k++) {
    char *name = config.unkept.at[k];
    int resource = resource_named((struct span){(uint8_t *)name, strlen(name)});
    for (size_t i = 0; i < launch->rlimits.count; i++) {
      if (launch->rlimits.at[i].resource == resource) return name;
    }
  }
  return NULL;
}

static bool prepare(struct plan *plan, struct failure *failure) {
  char message[200];
  struct launch *launch = &plan->launch;
  const char *unkept = unkept_of(launch);
  if (unkept) {
    snprintf(message, sizeof message,
             "rlimits: %.32s is not kept by the isolation of this sandbox; leave it out, or choose container", unkept);
    return failure_set(failure, "resource_limit", "rlimits", EINVAL, message), false;
  }
  const char *user = launch->user && *launch->user ? launch->user : config.user && *config.user ? config.user : "root";
  if (!identity_of(user, &plan->identity, message, sizeof message)) {
    return failure_set(failure, "user_setup_failed", "user", 0, message), false;
  }
  struct strings argv = {0};
  bool ok = strings_push(&launch->arena, &argv, launch->cmd);
  for (size_t i = 0; ok && i < launch->args.count; i++) ok = strings_push(&launch->arena, &argv, launch->args.at[i]);
  plan->argv = argv.at;
  plan->environment = ok ? environment_of(launch, &plan->identity) : NULL;
  if (!plan->environment) return failure_set(failure, "out_of_memory", "arguments", ENOMEM, "cannot hold the arguments"), false;
  plan->cwd = launch->cwd && *launch->cwd ? launch->cwd : config.workdir && *config.workdir ? config.workdir : "/";
  plan->defaults = config.rlimits;
  return true;
}

/** A pipe whose end `ours` is non-blocking. False with errno, also when only reserved descriptors are left. */
static bool open_pipe(int *fds, int ours) {
  if (pipe2(fds, O_CLOEXEC) < 0) return fds[0] = fds[1] = -1, false;
  if (is_reserved_fd(fds[1])) {
    close_all(fds, 2);
    fds[0] = fds[1] = -1;
    return errno = EMFILE, false;
  }
  fcntl(fds[ours], F_SETFL, O_NONBLOCK | (ours ? O_WRONLY : O_RDONLY));
  return true;
}

static bool open_stdio(struct plan *plan, struct spawned *spawned, struct failure *failure) {
  int fds[2];
  if (!open_pipe(fds, 0)) return failure_set(failure, "resource_limit", "pipe", errno, "cannot make a pipe"), false;
  spawned->error = fds[0], plan->error = fds[1];
  if (plan->launch.tty) {
    int slave = -1, master = pty_open(&slave, (unsigned)plan->launch.rows, (unsigned)plan->launch.cols);
    if (master < 0) return failure_set(failure, "pty_setup_failed", "pty", errno, "cannot open a terminal"), false;
    spawned->in = spawned->output[0] = master;
    plan->stdio[0] = plan->stdio[1] = plan->stdio[2] = slave;
    return true;
  }
  bool ok = open_pipe(fds, 1);
  if (ok) plan->stdio[0] = fds[0], spawned->in = fds[1];
  for (int i = 0; ok && i < 2; i++) {
    ok = open_pipe(fds, 0);
    if (!ok) break;
    spawned->output[i] = fds[0], plan->stdio[1 + i] = fds[1];
    if (i == STREAM_STDOUT) fcntl(fds[0], F_SETPIPE_SZ, PIPE_BYTES); // faster; optional
  }
  if (!ok) return failure_set(failure, "resource_limit", "pipe", errno, "cannot make a pipe"), false;
  if (!plan->launch.stdin) {
    close(spawned->in); // the program reads EOF at once
    spawned->in = -1;
  }
  return true;
}

static void close_all(const int *fds, size_t count) {
  int error = errno;
  for (size_t i = 0; i < count; i++) {
    if (fds[i] >= 0) close(fds[i]);
  }
  errno = error;
}
