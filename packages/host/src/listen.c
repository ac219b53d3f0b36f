#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "request.h"

enum { BACKLOG = 1024, LOWEST_DESCRIPTOR = 3, HIGHEST_DESCRIPTOR = 15, LEAST_ARGUMENTS = 4 };

static int complain(const char *step) {
  fprintf(stderr, "svc-host: %s: %s\n", step, strerror(errno));
  return 1;
}

/**
 * SAFETY: the packet filter recognizes sockets by the group of the process that made them, so this one gets the group that the program will
 * have: a program that was taken over can end the listening and connect the socket instead.
 */
static int open_socket(int family, gid_t group) {
  int before = setfsgid(group);
  // A second call is the only way to learn whether the first had an effect.
  if ((gid_t)setfsgid(group) != group) {
    errno = EPERM;
    return -1;
  }
  int opened = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), error = errno;
  setfsgid((gid_t)before);
  errno = error;
  return opened;
}

/** Of either family. Takes connections that are meant for any address, once the packet filter leads them here. */
static int open_listener(const char *address, gid_t group) {
  struct sockaddr_in place = {.sin_family = AF_INET};
  struct sockaddr_in6 place6 = {.sin6_family = AF_INET6};
  int on = 1;
  bool is_ipv6 = inet_pton(AF_INET6, address, &place6.sin6_addr) == 1;
  if (!is_ipv6 && inet_pton(AF_INET, address, &place.sin_addr) != 1) {
    errno = EINVAL;
    return -1;
  }
  int listener = open_socket(is_ipv6 ? AF_INET6 : AF_INET, group);
  if (listener < 0) return -1;
  int level = is_ipv6 ? SOL_IPV6 : SOL_IP, transparent = is_ipv6 ? IPV6_TRANSPARENT : IP_TRANSPARENT;
  if (setsockopt(listener, level, transparent, &on, sizeof on) < 0) return -1;
  const struct sockaddr *where = is_ipv6 ? (const struct sockaddr *)&place6 : (const struct sockaddr *)&place;
  if (bind(listener, where, is_ipv6 ? sizeof place6 : sizeof place) < 0) return -1;
  if (listen(listener, BACKLOG) < 0) return -1;
  return listener;
}

/**
 * SAFETY: the program will hold secrets, so a crash must not write its memory anywhere. A limit of 1 is too small for a file and keeps
 * the kernel from handing the memory to the program that core_pattern names, which a limit of 0 does not. A hard limit of 0 (sudo,
 * limits.conf) cannot be raised without CAP_SYS_RESOURCE: it stays, and the filter, which exec keeps, leaves no memory in the dump.
 */
static int forgo_core_files(void) {
  struct rlimit none = {1, 1};
  if (setrlimit(RLIMIT_CORE, &none) == 0) return 0;
  if (errno != EPERM) return -1;
  none.rlim_cur = none.rlim_max = 0;
  if (setrlimit(RLIMIT_CORE, &none) < 0) return -1;
  int filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
  if (filter < 0) return -1;
  bool is_written = write(filter, "0", 1) == 1;
  int error = errno;
  close(filter);
  errno = error;
  return is_written ? 0 : -1;
}

int listen_and_become(int count, char **arguments) {
  if (count < LEAST_ARGUMENTS) {
    fputs("usage: svc-host --listen ADDRESS DESCRIPTOR GROUP PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  struct failure failure = {0};
  uint32_t group;
  /* The highest number means "none". */
  if (parse_number(arguments[2], 0, UINT32_MAX - 1, &group, &failure) < 0) {
    errno = failure.error;
    return complain("the group");
  }
  int descriptor = atoi(arguments[1]);
  if (descriptor < LOWEST_DESCRIPTOR || descriptor > HIGHEST_DESCRIPTOR) {
    errno = EINVAL;
    return complain("the descriptor");
  }
  /* The descriptor is in use already: it would be replaced silently. */
  if (fcntl(descriptor, F_GETFD) >= 0) {
    errno = EBUSY;
    return complain("the descriptor");
  }
  if (forgo_core_files() < 0) return complain("forgo core files (setrlimit RLIMIT_CORE or /proc/self/coredump_filter)");
  int listener = open_listener(arguments[0], group);
  if (listener < 0) return complain("listen");
  /* A duplicate stays open across exec; it may be the same number, which dup2 would leave as it is. */
  if (listener == descriptor ? fcntl(listener, F_SETFD, 0) < 0 : dup2(listener, descriptor) < 0) return complain("dup2");
  /* SAFETY: the engine chooses the program and its arguments, and its environment is what the engine gave this one. */
  execvp(arguments[3], arguments + 3);
  return complain(arguments[3]);
}
