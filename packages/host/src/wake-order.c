#include "wake-order.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/** A thread has the policy of the one that made it, which may have been changed since. */
enum { MOST_ROUNDS = 8 };
/** Within its cgroup nine times the share of others, so that it never has to wait until one of them has had as much. */
enum { NICER_BY = -10 };

int wake_in_turn(struct failure *failure) {
  return sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}) == 0 ? 0 : fail(failure, "wake in turn");
}

/** 1 when it was changed. SAFETY: a thread of another policy than ours is not ours, and left alone. */
static int change_thread(pid_t thread, struct failure *failure) {
  if (sched_getscheduler(thread) != SCHED_BATCH) return 0;
  int nice = getpriority(PRIO_PROCESS, 0) + NICER_BY;
  // The policy last: by it we know whether all is done.
  if (setpriority(PRIO_PROCESS, (id_t)thread, nice) == 0 &&
      sched_setscheduler(thread, SCHED_OTHER, &(struct sched_param){0}) == 0) {
    return 1;
  }
  return errno == ESRCH ? 0 : fail(failure, "go first");
}

/** How many were changed. */
static int change_threads(pid_t pid, struct failure *failure) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *threads = opendir(path);
  if (threads == NULL) return errno == ENOENT ? 0 : fail(failure, "list threads");
  int count = 0;
  for (struct dirent *entry; count >= 0 && (entry = readdir(threads)) != NULL;) {
    int changed = *entry->d_name == '.' ? 0 : change_thread((pid_t)atoi(entry->d_name), failure);
    count = changed < 0 ? -1 : count + changed;
  }
  closedir(threads);
  return count;
}

int go_first(pid_t pid, struct failure *failure) {
  int changed = 1;
  for (int round = 0; changed > 0 && round < MOST_ROUNDS; round++) changed = change_threads(pid, failure);
  return changed < 0 ? -1 : 0;
}
