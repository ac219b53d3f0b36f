#include "privileges/filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "filter-programs.h"

bool filter_load(enum profile profile) {
  if (profile == PROFILE_NONE) return true;
  bool is_restricted = profile == PROFILE_RESTRICTED;
  const struct sock_filter *filter = is_restricted ? restricted_filter : default_filter;
  size_t bytes = is_restricted ? sizeof restricted_filter : sizeof default_filter;
  struct sock_fprog program = {(unsigned short)(bytes / sizeof *filter), (struct sock_filter *)filter};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
