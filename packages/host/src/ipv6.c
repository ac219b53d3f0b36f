#include "ipv6.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pauses.h"

static int set(const char *interface, const char *name, const char *value, struct failure *failure) {
  char path[96];
  snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/%s", interface, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail(failure, "open %s of IPv6", name);
  int outcome = write(fd, value, 1) == 1 ? 0 : fail(failure, "set %s of IPv6", name);
  close(fd);
  return outcome;
}

static int set_disabled(const char *interface, const char *value, struct failure *failure) {
  struct failure attempt = {0};
  if (set(interface, "disable_ipv6", value, &attempt) == 0 || attempt.error == ENOENT) return 0;
  return fail_with(failure, attempt.error, "turn off IPv6");
}

int disable_ipv6(const char *interface, struct failure *failure) {
  // The kernel retries to take its lock of interfaces in there, without sleeping.
  bool has_pauses = start_pauses();
  int outcome = set_disabled(interface, "1", failure);
  if (has_pauses) stop_pauses();
  return outcome;
}

int enable_ipv6(const char *interface, struct failure *failure) {
  bool has_pauses = start_pauses();
  int outcome = set(interface, "addr_gen_mode", "1", failure);
  if (outcome == 0) outcome = set(interface, "accept_ra", "0", failure);
  if (outcome == 0) outcome = set(interface, "disable_ipv6", "0", failure);
  if (has_pauses) stop_pauses();
  return outcome;
}

int set_ipv6_of_new_interfaces(bool is_on, struct failure *failure) { return set_disabled("default", is_on ? "0" : "1", failure); }
