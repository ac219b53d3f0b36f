#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

mode_t inherited_umask = 022;

static const char *search_path(char *const environment[]) {
  for (; *environment != NULL; environment++) {
    if (strncmp(*environment, "PATH=", 5) == 0) return *environment + 5;
  }
  return "";
}

static bool is_program(const char *path) {
  struct stat status;
  return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/** Not posix_spawnp: that searches our own PATH, which is empty. Relative parts of the PATH are skipped. */
static int find_program(const struct spawn_plan *plan, char found[PATH_MAX], struct failure *failure) {
  const char *name = plan->command[0];
  if (strchr(name, '/') != NULL) {
    if (strlen(name) >= PATH_MAX) return fail_with(failure, ENAMETOOLONG, "find the program");
    strcpy(found, name);
    return 0;
  }
  const char *folder = search_path(plan->environment);
  while (*name != '\0' && *folder != '\0') {
    size_t length = strcspn(folder, ":");
    int needed = snprintf(found, PATH_MAX, "%.*s/%s", (int)length, folder, name);
    if (*folder == '/' && needed < PATH_MAX && is_program(found)) return 0;
    folder += length;
    if (*folder == ':') folder++;
  }
  return fail_with(failure, ENOENT, "find the program");
}

/**
 * SAFETY: every descriptor of ours is close-on-exec already; a forgotten one could give a sandbox access to the host's files. Only the claim
 * is left to the kernel, which closes it at the exec; `posix_spawn` returns a moment earlier.
 */
static int close_others(int claim, posix_spawn_file_actions_t *actions, struct failure *failure) {
  int error = 0;
  for (int other = 3; other < claim && error == 0; other++) error = posix_spawn_file_actions_addclose(actions, other);
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(actions, claim < 3 ? 3 : claim + 1);
  return error == 0 ? 0 : fail_with(failure, error, "close descriptors");
}

static int connect_streams(const struct spawn_plan *plan, posix_spawn_file_actions_t *actions, int near_ends[3],
                           struct spawned *spawned, struct failure *failure) {
  for (int stream = 0; stream < 3; stream++) {
    int error;
    if (plan->has_closed_streams) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return fail(failure, "make a socket pair");
      near_ends[stream] = ends[0];
      spawned->far_ends[stream] = ends[1];
      error = posix_spawn_file_actions_adddup2(actions, ends[0], stream);
    } else {
      error = posix_spawn_file_actions_addopen(actions, stream, "/dev/null", stream == 0 ? O_RDONLY : O_RDWR, 0);
    }
    if (error != 0) return fail_with(failure, error, "connect the streams");
  }
  return close_others(plan->claim, actions, failure);
}

static int set_attributes(posix_spawnattr_t *attributes, struct failure *failure) {
  sigset_t all, none;
  // Not sigfillset: it leaves out two signals of the C library, which the program would then inherit as ignored.
  memset(&all, 0xff, sizeof all);
  sigemptyset(&none);
  int error = posix_spawnattr_setsigdefault(attributes, &all);
  if (error == 0) error = posix_spawnattr_setsigmask(attributes, &none);
  short flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
  if (error == 0) error = posix_spawnattr_setflags(attributes, flags);
  return error == 0 ? 0 : fail_with(failure, error, "set how to spawn");
}

/** SAFETY: no shell; the engine makes every argument. */
static int execute_program(const struct spawn_plan *plan, const char *program, posix_spawn_file_actions_t *actions,
                           posix_spawnattr_t *attributes, pid_t *pid, struct failure *failure) {
  int error = posix_spawn(pid, program, actions, attributes, plan->command, plan->environment);
  return error == 0 ? 0 : fail_with(failure, error, "execute the program");
}

static int spawn_with(const struct spawn_plan *plan, posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
                      struct spawned *spawned, struct failure *failure) {
  char program[PATH_MAX];
  int near_ends[3] = {-1, -1, -1};
  int outcome = -1;
  if (find_program(plan, program, failure) == 0 && set_attributes(attributes, failure) == 0 &&
      connect_streams(plan, actions, near_ends, spawned, failure) == 0) {
    outcome = execute_program(plan, program, actions, attributes, &spawned->pid, failure);
  }
  for (int stream = 0; stream < 3; stream++) {
    if (near_ends[stream] >= 0) close(near_ends[stream]);
  }
  return outcome;
}

/** Mounts of the host still propagate to the program; its own mounts, and writes in them, do not propagate back. */
static int cover_folder(const char *path, struct failure *failure) {
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) {
    return fail(failure, "make a mount namespace");
  }
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return mount("none", path, "tmpfs", flags, "size=64k") == 0 ? 0 : fail(failure, "cover a folder");
}

int spawn_program(const struct spawn_plan *plan, struct spawned *spawned, struct failure *failure) {
  *spawned = (struct spawned){.far_ends = {-1, -1, -1}};
  // The folder and the umask are shared by all threads until a thread unshares them.
  if (unshare(CLONE_FS) < 0 || chdir("/") < 0) return fail(failure, "leave the folder");
  if (plan->cover != NULL && cover_folder(plan->cover, failure) < 0) return -1;
  umask(inherited_umask);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (posix_spawn_file_actions_init(&actions) != 0) return fail_with(failure, ENOMEM, "spawn");
  int outcome = posix_spawnattr_init(&attributes) == 0 ? 0 : fail_with(failure, ENOMEM, "spawn");
  if (outcome == 0) {
    outcome = spawn_with(plan, &actions, &attributes, spawned, failure);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&actions);
  if (outcome < 0) close_far_ends(spawned);
  return outcome;
}

void close_far_ends(const struct spawned *spawned) {
  for (int stream = 0; stream < 3; stream++) {
    if (spawned->far_ends[stream] >= 0) close(spawned->far_ends[stream]);
  }
}
