#include "loop/descriptors.h"

#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bounds.h"

enum { DESCRIPTORS_MAX = 65536 };

static rlim_t own_fds;

void descriptors_init(void) {
  struct rlimit given = {0};
  getrlimit(RLIMIT_NOFILE, &given);
  struct rlimit raised = {given.rlim_max, given.rlim_max};
  if (raised.rlim_cur > DESCRIPTORS_MAX) raised.rlim_cur = DESCRIPTORS_MAX;
  if (raised.rlim_cur < given.rlim_cur) raised.rlim_cur = given.rlim_cur;
  own_fds = setrlimit(RLIMIT_NOFILE, &raised) ? given.rlim_cur : raised.rlim_cur;
}

bool is_reserved_fd(int fd) { return own_fds > 2 * FDS_RESERVED && (rlim_t)fd >= own_fds - FDS_RESERVED; }

void close_inherited(int first) {
  // gVisor refuses a last descriptor beyond INT_MAX, and closing one by one takes it a second.
  if (close_range((unsigned)first, INT_MAX, 0) == 0) return;
  for (int fd = first; fd < DESCRIPTORS_MAX; fd++) close(fd);
}
