#include "process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

#include "privileges/privileges.h"
#include "privileges/raw.h"
#include "process/environment.h"
#include "wire/failure.h"

enum { FAILED_UNTOLD = 126, FAILED = 127, SIGNAL_SET_BYTES = 8 };

static void take_stdio(struct plan *);
static void move_stdin(struct plan *, int fd);
static void set_limits(struct plan *);
static void become_user(struct plan *);
static void reset_signals(void);
static _Noreturn void execute(struct plan *);
static _Noreturn void leave(int code);
static _Noreturn void die(struct plan *, const char *kind, const char *stage, long error, const char *message);

void child_run(struct plan *plan) {
  take_stdio(plan);
  set_limits(plan);
  become_user(plan);
  long error = RAW(chdir, plan->cwd, 0, 0, 0);
  if (error < 0) die(plan, "bad_cwd", "cwd", error, plan->cwd);
  RAW(umask, 022, 0, 0, 0);
  reset_signals();
  execute(plan);
}

static void take_stdio(struct plan *plan) {
  long error = RAW(setsid, 0, 0, 0, 0);
  if (error < 0) die(plan, "other", "session", error, "cannot start a session");
  if (plan->launch.tty) {
    error = RAW(ioctl, plan->stdio[0], TIOCSCTTY, 0, 0);
    if (error < 0) die(plan, "pty_setup_failed", "pty", error, "cannot take the terminal");
    // A program that runs as another user may open its own /dev/pts entry. Some runtimes forbid the change.
    if (!RAW(fchown, plan->stdio[0], plan->identity.uid, -1, 0)) RAW(fchmod, plan->stdio[0], 0620, 0, 0);
  }
  if (plan->launch.stdin_fd) move_stdin(plan, (int)plan->launch.stdin_fd);
  for (int i = 0; i < 3; i++) {
    // A descriptor that is in its place already still has close-on-exec set.
    error = plan->stdio[i] == i ? RAW(fcntl, i, F_SETFD, 0, 0) : RAW(dup3, plan->stdio[i], i, 0, 0);
    if (error < 0) die(plan, "resource_limit", "stdio", error, "cannot set up the standard streams");
  }
}

/** The input becomes descriptor `fd`, and stdin is empty. */
static void move_stdin(struct plan *plan, int fd) {
  int *used[] = {&plan->error, &plan->stdio[0], &plan->stdio[1], &plan->stdio[2]};
  long error = 0;
  for (size_t i = 0; i < COUNT(used) && error >= 0; i++) {
    if (*used[i] == fd) *used[i] = (int)(error = RAW(fcntl, fd, F_DUPFD_CLOEXEC, fd + 1, 0));
  }
  if (error >= 0) error = RAW(dup3, plan->stdio[0], fd, 0, 0);
  if (error >= 0) plan->stdio[0] = (int)(error = RAW(openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0));
  if (error < 0) die(plan, "resource_limit", "stdio", error, "cannot set up the standard streams");
}

static long set_limit(int resource, rlim_t soft, rlim_t hard) {
  struct rlimit limit = {soft, hard};
  return RAW(prlimit64, 0, resource, &limit, 0);
}

static rlim_t least(rlim_t a, rlim_t b) { return a < b ? a : b; }

static void set_limits(struct plan *plan) {
  const struct rlimit *own = plan->own_limits;
  set_limit(RLIMIT_NOFILE, own[RLIMIT_NOFILE].rlim_cur, own[RLIMIT_NOFILE].rlim_max);
  if (plan->mark) set_limit(RLIMIT_RSS, plan->mark, plan->mark);
  for (size_t i = 0; i < plan->defaults.count; i++) {
    struct limit limit = plan->defaults.at[i];
    if (set_limit(limit.resource, limit.soft, limit.hard) >= 0) continue;
    // The sandbox's default may be above this host's maximum: use the maximum then.
    rlim_t most = own[limit.resource].rlim_max;
    set_limit(limit.resource, least(limit.soft, most), least(limit.hard, most));
  }
  for (size_t i = 0; i < plan->launch.rlimits.count; i++) {
    struct limit limit = plan->launch.rlimits.at[i];
    long error = set_limit(limit.resource, limit.soft, limit.hard);
    if (error < 0) die(plan, "resource_limit", "rlimits", error, "cannot set a resource limit above the sandbox's own");
  }
}

static void become_user(struct plan *plan) {
  const struct identity *who = &plan->identity;
  // SAFETY: groups, then gid, then uid: each step needs a privilege that the next one gives up.
  long error = RAW(setgroups, who->group_count, who->groups, 0, 0);
  if (error < 0) die(plan, "user_setup_failed", "groups", error, "cannot set the groups");
  error = RAW(setresgid, who->gid, who->gid, who->gid, 0);
  if (error < 0) die(plan, "user_setup_failed", "group", error, "cannot become the group");
  privileges_before_user();
  error = RAW(setresuid, who->uid, who->uid, who->uid, 0);
  if (error < 0) die(plan, error == -EAGAIN ? "resource_limit" : "user_setup_failed", "user", error, "cannot become the user");
  error = privileges_of_user(who->uid);
  if (error < 0) die(plan, "user_setup_failed", "capabilities", error, "cannot give up capabilities");
}

static void reset_signals(void) {
  // The kernel's struct: handler, flags, restorer and mask, all zero.
  const unsigned long none[4] = {(unsigned long)SIG_DFL};
  RAW(rt_sigaction, SIGPIPE, none, 0, SIGNAL_SET_BYTES);
  RAW(rt_sigprocmask, SIG_SETMASK, &none[3], 0, SIGNAL_SET_BYTES);
}

/** Writes "folder/name"; false when it does not fit. */
static bool join(char *path, size_t size, const char *folder, size_t length, const char *name) {
  size_t rest = strlen(name);
  if (length + rest + 2 > size) return false;
  memcpy(path, folder, length);
  if (length) path[length++] = '/';
  memcpy(path + length, name, rest + 1);
  return true;
}

static void execute(struct plan *plan) {
  const char *cmd = plan->argv[0], *path = environment_get(plan->environment, "PATH");
  long error = -ENOENT;
  if (strchr(cmd, '/') || !path) error = RAW(execve, cmd, plan->argv, plan->environment, 0);
  for (const char *start = path, *end; start && !strchr(cmd, '/'); start = *end ? end + 1 : NULL) {
    char candidate[4096];
    end = strchrnul(start, ':');
    if (!join(candidate, sizeof candidate, start, (size_t)(end - start), cmd)) continue;
    long refusal = RAW(execve, candidate, plan->argv, plan->environment, 0);
    if (refusal == -EACCES) error = -EACCES; // found but not allowed: reported unless a later folder has it
    else if (refusal != -ENOENT && refusal != -ENOTDIR) die(plan, NULL, "exec", refusal, cmd);
  }
  // A path with a file as folder counts as a missing program; ENOTDIR means bad_cwd only for the working directory.
  die(plan, error == -ENOTDIR ? "not_found" : NULL, "exec", error, cmd);
}

static _Noreturn void leave(int code) {
  for (;;) RAW(exit_group, code, 0, 0, 0);
}

static _Noreturn void die(struct plan *plan, const char *kind, const char *stage, long error, const char *message) {
  struct failure failure;
  memset(&failure, 0, sizeof failure);
  failure_set(&failure, kind, stage, (int)-error, message);
  // One write below PIPE_BUF is atomic.
  leave(RAW(write, plan->error, &failure, sizeof failure, 0) < 0 ? FAILED_UNTOLD : FAILED);
}
