#include "resident.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privileges.h"

/** Returns twice, like fork. All namespaces at once: the kernel makes the user namespace first, so it owns the others. */
static pid_t clone_as_owner(const struct new_namespaces *namespaces, struct failure *failure) {
  if (own_namespaces_as(namespaces->owner, failure) < 0) return -1;
  pid_t pid = (pid_t)syscall(SYS_clone, namespaces->kinds | SIGCHLD, NULL, NULL, NULL, NULL);
  if (pid == 0) return 0;
  if (pid < 0) fail(failure, "make namespaces");
  own_namespaces_as_root();
  return pid;
}

int start_resident(struct resident *resident, const struct new_namespaces *namespaces,
                   void (*live)(int channel, const void *context), const void *context, struct failure *failure) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return fail(failure, "make a socket pair");
  pid_t pid = clone_as_owner(namespaces, failure);
  if (pid == 0) {
    // SAFETY: this process has every capability in its namespaces; it must never outlive the helper.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    live(ends[1], context);
    _exit(0);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return -1;
  }
  resident->pid = pid;
  resident->channel = ends[0];
  return 0;
}

void end_resident(const struct resident *resident) {
  close(resident->channel);
  kill(resident->pid, SIGKILL);
  while (waitpid(resident->pid, NULL, 0) < 0 && errno == EINTR) continue;
}

void wait_inside(int channel, const void *context) {
  (void)context;
  char byte;
  // Blocks until EOF, when the other side closes.
  (void)!read(channel, &byte, 1);
}

static int write_map(pid_t pid, const char *file, const struct id_ranges *ids, struct failure *failure) {
  char path[64], map[MAX_RANGES * 40];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
  size_t length = 0;
  for (size_t index = 0; index < ids->count; index++) {
    const struct id_range *range = &ids->ranges[index];
    length += (size_t)snprintf(map + length, sizeof map - length, "%u %u %u\n", range->inside, range->outside, range->length);
  }
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail(failure, "open %s", file);
  int outcome = write(fd, map, length) == (ssize_t)length ? 0 : fail(failure, "write %s", file);
  close(fd);
  return outcome;
}

int write_maps(const struct resident *resident, const struct id_ranges *users, const struct id_ranges *groups,
               struct failure *failure) {
  if (write_map(resident->pid, "uid_map", users, failure) < 0) return -1;
  return write_map(resident->pid, "gid_map", groups, failure);
}

int open_namespace(const struct resident *resident, const char *kind, struct failure *failure) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/%s", resident->pid, kind);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? fail(failure, "open the %s namespace", kind) : fd;
}
