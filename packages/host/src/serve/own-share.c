#include "serve/own-share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/** Of the two kinds of trees that have the controller; at most one of them is there. The engine made the group (engine/src/cgroup/own-share.ts). */
static const char *const WORK[] = {"/sys/fs/cgroup/cpu/svc-work/cgroup.procs", "/sys/fs/cgroup/svc-work/cgroup.procs"};

static const int BEHIND_OTHERS = 10;

void leave_own_share(void) {
  for (unsigned index = 0; index < sizeof WORK / sizeof *WORK; index++) {
    int file = open(WORK[index], O_WRONLY | O_CLOEXEC);
    if (file < 0) continue;
    /** SAFETY: 0 is this process. Where it cannot leave it stays: it serves all the same. */
    ssize_t written = write(file, "0", 1);
    close(file);
    if (written == 1) return;
  }
}

int stand_back(char **command) {
  leave_own_share();
  // Where it could not leave, those beside it go first.
  if (nice(BEHIND_OTHERS) == -1 && errno != 0) perror("svc-host: nice");
  execvp(command[0], command);
  perror(command[0]);
  return 127;
}
