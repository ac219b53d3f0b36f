#include "serve/own-share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/** engine/src/cgroup/own-share.ts put us there. */
static const char *const OWN = "/svc-own\n";

/** Of the two kinds of trees that have the controller; at most one of them is there. The engine made the groups. */
static const char *const WORK[] = {"/sys/fs/cgroup/cpu/svc-work/cgroup.procs", "/sys/fs/cgroup/svc-work/cgroup.procs"};

static const int BEHIND_OTHERS = 10;

static int is_in_own(void) {
  char text[4096] = "";
  int file = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 && strstr(text, OWN) != NULL;
}

void leave_own_share(void) {
  if (!is_in_own()) return;
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
