#include "serve/own-share.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/** engine/src/cgroup/own-share.ts put us there. */
static const char *const OWN = "/svc-own\n";

/** The roots of the two kinds of trees that have the controller; at most one of them is there. */
static const char *const ROOTS[] = {"/sys/fs/cgroup/cpu/cgroup.procs", "/sys/fs/cgroup/cgroup.procs"};

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
  for (unsigned index = 0; index < sizeof ROOTS / sizeof *ROOTS; index++) {
    int file = open(ROOTS[index], O_WRONLY | O_CLOEXEC);
    if (file < 0) continue;
    /** SAFETY: 0 is this process. Where it cannot leave it stays: it serves all the same. */
    ssize_t written = write(file, "0", 1);
    close(file);
    if (written == 1) return;
  }
}
