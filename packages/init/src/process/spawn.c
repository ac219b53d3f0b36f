#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/children.h"
#include "loop/descriptors.h"
#include "privileges/privileges.h"
#include "process/config.h"
#include "process/environment.h"
#include "process/pty.h"
#include "process/tree-kill.h"
#include "process/users.h"

enum { PIPE_BYTES = 1024 * 1024 };

struct plan {
  struct launch *launch;
  struct identity identity;
  char **argv, **environment;
  const char *cwd;
  int stdio[3]; // the child's own ends
  int error;
  uint64_t mark;
};

static struct rlimit own_limits[RLIM_NLIMITS];

static bool is_rss_limited(const struct launch *);
static const char *unkept_of(const struct launch *);
static bool prepare(struct plan *, struct launch *, struct failure *);
static bool open_stdio(struct plan *, struct spawned *, struct failure *);
static void close_all(const int *fds, size_t count);
static _Noreturn void run_child(struct plan *);

void spawn_init(void) {
  for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit((__rlimit_resource_t)i, &own_limits[i]);
  descriptors_init();
}

bool spawn(struct launch *launch, struct spawned *spawned, struct failure *failure) {
  struct plan plan = {.launch = launch, .stdio = {-1, -1, -1}, .error = -1};
  *spawned = (struct spawned){.error = -1, .in = -1, .output = {-1, -1}};
  if (!prepare(&plan, launch, failure)) return false;
  spawned->mark = plan.mark = is_rss_limited(launch) ? 0 : tree_mark_new(own_limits[RLIMIT_RSS].rlim_max);
  bool ok = open_stdio(&plan, spawned, failure);
  if (ok) {
    // SAFETY: fork, not vfork: a guest that stops the child before exec must not stop PID 1 with it.
    pid_t pid = fork();
    if (pid == 0) run_child(&plan);
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

/** Who asks for this limit gets it, in the place of the mark. */
static bool is_rss_limited(const struct launch *launch) {
  bool is_limited = false;
  for (size_t i = 0; i < config.rlimits.count; i++) is_limited |= config.rlimits.at[i].resource == RLIMIT_RSS;
  for (size_t i = 0; i < launch->rlimits.count; i++) is_limited |= launch->rlimits.at[i].resource == RLIMIT_RSS;
  return is_limited;
}

/** The name of a limit that would be taken and not kept; NULL: there is none. */
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

static bool prepare(struct plan *plan, struct launch *launch, struct failure *failure) {
  char message[200];
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
  return true;
}

/** A pipe whose end `ours` does not block. False with errno, also when only reserved descriptors are left. */
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
  if (plan->launch->tty) {
    int slave = -1, master = pty_open(&slave, (unsigned)plan->launch->rows, (unsigned)plan->launch->cols);
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
    if (i == STREAM_STDOUT) fcntl(fds[0], F_SETPIPE_SZ, PIPE_BYTES); // faster; not getting it is fine
  }
  if (!ok) return failure_set(failure, "resource_limit", "pipe", errno, "cannot make a pipe"), false;
  if (!plan->launch->stdin) {
    close(spawned->in); // reads of the program then see the end at once
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

static _Noreturn void die(struct plan *plan, const char *kind, const char *stage, int error, const char *message) {
  struct failure failure;
  memset(&failure, 0, sizeof failure);
  failure_set(&failure, kind, stage, error, message);
  // One write below PIPE_BUF: it arrives whole or not at all.
  if (write(plan->error, &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

/** The input becomes descriptor `fd`, and stdin is empty. */
static void move_stdin(struct plan *plan, int fd) {
  int *used[] = {&plan->error, &plan->stdio[0], &plan->stdio[1], &plan->stdio[2]};
  bool ok = true;
  for (size_t i = 0; i < COUNT(used); i++) {
    if (*used[i] == fd) ok &= (*used[i] = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1)) >= 0;
  }
  ok = ok && dup2(plan->stdio[0], fd) >= 0 && (plan->stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
  if (!ok) die(plan, "resource_limit", "stdio", errno, "cannot set up the standard streams");
}

static void take_stdio(struct plan *plan) {
  if (setsid() < 0) die(plan, "other", "session", errno, "cannot start a session");
  if (plan->launch->tty) {
    if (ioctl(plan->stdio[0], TIOCSCTTY, 0) < 0) die(plan, "pty_setup_failed", "pty", errno, "cannot take the terminal");
    // A program that runs as another user may open its own /dev/pts entry. Not every runtime allows the change.
    if (fchown(plan->stdio[0], plan->identity.uid, (gid_t)-1) < 0 || fchmod(plan->stdio[0], 0620) < 0) errno = 0;
  }
  if (plan->launch->stdin_fd) move_stdin(plan, (int)plan->launch->stdin_fd);
  for (int i = 0; i < 3; i++) {
    if (dup2(plan->stdio[i], i) < 0) die(plan, "resource_limit", "stdio", errno, "cannot set up the standard streams");
  }
}

static void set_limits(struct plan *plan) {
  setrlimit(RLIMIT_NOFILE, &own_limits[RLIMIT_NOFILE]);
  if (plan->mark) setrlimit(RLIMIT_RSS, &(struct rlimit){plan->mark, plan->mark});
  for (size_t i = 0; i < config.rlimits.count; i++) {
    struct limit limit = config.rlimits.at[i];
    rlim_t most = own_limits[limit.resource].rlim_max;
    struct rlimit wanted = {limit.soft, limit.hard};
    if (!setrlimit((__rlimit_resource_t)limit.resource, &wanted)) continue;
    // The sandbox's default may be above what this host lets us give: the most it allows, then.
    wanted = (struct rlimit){limit.soft < most ? limit.soft : most, limit.hard < most ? limit.hard : most};
    setrlimit((__rlimit_resource_t)limit.resource, &wanted);
  }
  for (size_t i = 0; i < plan->launch->rlimits.count; i++) {
    struct limit limit = plan->launch->rlimits.at[i];
    struct rlimit wanted = {limit.soft, limit.hard};
    if (setrlimit((__rlimit_resource_t)limit.resource, &wanted) < 0) {
      die(plan, "resource_limit", "rlimits", errno, "cannot set a resource limit above the sandbox's own");
    }
  }
}

static void execute(struct plan *plan) {
  const char *cmd = plan->argv[0], *path = environment_get(plan->environment, "PATH");
  int error = ENOENT;
  if (strchr(cmd, '/') || !path) {
    execve(cmd, plan->argv, plan->environment);
    error = errno;
  }
  for (const char *start = path, *end; start && !strchr(cmd, '/'); start = *end ? end + 1 : NULL) {
    char candidate[4096];
    end = strchrnul(start, ':');
    int length = snprintf(candidate, sizeof candidate, "%.*s%s%s", (int)(end - start), start, end > start ? "/" : "", cmd);
    if (length < 0 || (size_t)length >= sizeof candidate) continue;
    execve(candidate, plan->argv, plan->environment);
    if (errno == EACCES) error = EACCES; // seen but not allowed: the answer, unless a later folder has it
    else if (errno != ENOENT && errno != ENOTDIR) return die(plan, NULL, "exec", errno, cmd);
  }
  // A path with a file as folder is a missing program here; ENOTDIR means bad_cwd only for the working directory.
  die(plan, error == ENOTDIR ? "not_found" : NULL, "exec", error, cmd);
}

static _Noreturn void run_child(struct plan *plan) {
  const struct identity *who = &plan->identity;
  take_stdio(plan);
  set_limits(plan);
  // SAFETY: groups, then gid, then uid: each step needs a privilege the next one gives up.
  if (setgroups(who->group_count, who->groups) < 0) die(plan, "user_setup_failed", "groups", errno, "cannot set the groups");
  if (setresgid(who->gid, who->gid, who->gid) < 0) die(plan, "user_setup_failed", "group", errno, "cannot become the group");
  privileges_before_user();
  if (setresuid(who->uid, who->uid, who->uid) < 0) {
    die(plan, errno == EAGAIN ? "resource_limit" : "user_setup_failed", "user", errno, "cannot become the user");
  }
  if (!privileges_of_user(who->uid)) die(plan, "user_setup_failed", "capabilities", errno, "cannot give up capabilities");
  if (chdir(plan->cwd) < 0) die(plan, "bad_cwd", "cwd", errno, plan->cwd);
  umask(022);
  signals_reset();
  execute(plan);
  _exit(127);
}
