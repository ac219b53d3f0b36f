#include "precision.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Threads beyond this number are changed twice, which is harmless. */
enum { MOST_REMEMBERED = 256 };

static bool is_gone_or_forbidden(void) { return errno == ENOENT || errno == ESRCH || errno == EPERM || errno == EACCES; }

/** https://man7.org/linux/man-pages/man5/proc_pid_timerslack_ns.5.html */
static int set_slack(pid_t thread, uint32_t slack_ns, struct failure *failure) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/timerslack_ns", (int)thread);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return is_gone_or_forbidden() ? 0 : fail(failure, "open the precision of a thread");
  char text[16];
  int length = snprintf(text, sizeof text, "%" PRIu32, slack_ns);
  ssize_t written = write(file, text, (size_t)length);
  int outcome = written == length || is_gone_or_forbidden() ? 0 : fail(failure, "set the precision of a thread");
  close(file);
  return outcome;
}

/** SAFETY: elsewhere SIGURG means urgent data on a connection, and a process without a handler ignores it. */
static bool takes_interrupts(pid_t pid) {
  char path[32];
  char line[128];
  uint64_t caught = 0;
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  FILE *status = fopen(path, "re");
  if (status == NULL) return false;
  while (fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, "SigCgt:", 7) == 0) caught = strtoull(line + 7, NULL, 16);
  }
  fclose(status);
  return (caught >> (SIGURG - 1) & 1) != 0;
}

/** https://man7.org/linux/man-pages/man5/proc_pid_syscall.5.html */
static bool sleeps_by_a_timer(pid_t thread) {
  char path[40];
  char text[160] = {0};
  snprintf(path, sizeof path, "/proc/%d/syscall", (int)thread);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  // Where it cannot be read all threads are interrupted, which is slower and not wrong.
  if (file < 0) return true;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  long call;
  uint64_t fourth;
  if (length <= 0) return true;
  if (sscanf(text, "%ld %*x %*x %*x %" SCNx64, &call, &fourth) != 2) return false;
  switch (call) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return true;
    case SYS_futex: return fourth != 0;
    case SYS_epoll_pwait: return (int32_t)fourth > 0;
    default: return false;
  }
}

/** Threads that were changed, in the order in which the kernel lists them: that of their age. */
struct changed {
  size_t count;
  pid_t threads[MOST_REMEMBERED];
};

static bool was_changed(const struct changed *changed, pid_t thread) {
  for (size_t index = 0; index < changed->count; index++) {
    if (changed->threads[index] == thread) return true;
  }
  return false;
}

static int change_thread(pid_t thread, uint32_t slack_ns, struct changed *changed, struct failure *failure) {
  if (was_changed(changed, thread)) return 0;
  if (changed->count < MOST_REMEMBERED) changed->threads[changed->count++] = thread;
  return set_slack(thread, slack_ns, failure);
}

static int change_threads(pid_t pid, uint32_t slack_ns, bool is_interrupt, struct changed *changed, struct failure *failure) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *threads = opendir(path);
  if (threads == NULL) return is_gone_or_forbidden() ? 0 : fail(failure, "list threads");
  int outcome = 0;
  for (struct dirent *entry; outcome == 0 && (entry = readdir(threads)) != NULL;) {
    if (*entry->d_name == '.') continue;
    pid_t thread = (pid_t)atoi(entry->d_name);
    outcome = change_thread(thread, slack_ns, changed, failure);
    // Sent to each thread: signals to the whole process that are pending at once are merged into one.
    if (is_interrupt && sleeps_by_a_timer(thread)) syscall(SYS_tgkill, pid, thread, SIGURG);
  }
  closedir(threads);
  return outcome;
}

/** Walks the threads twice: one that was created during the first walk may have inherited the old precision. */
int set_precision(pid_t pid, uint32_t slack_ns, bool is_interrupt, struct failure *failure) {
  struct changed changed = {0};
  // A thread that is interrupted before all are changed may sleep with the old precision again.
  if (change_threads(pid, slack_ns, false, &changed, failure) < 0) return -1;
  return change_threads(pid, slack_ns, is_interrupt && takes_interrupts(pid), &changed, failure);
}
