#include "serve/mount-served.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/stat-overlay.h"

/** Descriptor numbers of the server's descriptors; the standard streams are below. */
enum { FIRST_UNUSED = 10 };

static int set_string(int context, const char *key, const char *value, struct failure *failure) {
  if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0) == 0) return 0;
  return fail(failure, "set %s", key);
}

static int set_flag(int context, const char *key, struct failure *failure) {
  if (syscall(SYS_fsconfig, context, FSCONFIG_SET_FLAG, key, NULL, 0) == 0) return 0;
  return fail(failure, "set %s", key);
}

static int configure(int context, int device, mode_t type, struct failure *failure) {
  char number[16], mode[16];
  snprintf(number, sizeof number, "%d", device);
  snprintf(mode, sizeof mode, "%o", type);
  if (set_string(context, "source", "folder", failure) < 0 || set_string(context, "fd", number, failure) < 0) return -1;
  if (set_string(context, "rootmode", mode, failure) < 0 || set_string(context, "user_id", "0", failure) < 0) return -1;
  if (set_string(context, "group_id", "0", failure) < 0) return -1;
  // SAFETY: the guest's users are not root; the kernel checks each against owner and mode before it asks the server.
  if (set_flag(context, "allow_other", failure) < 0 || set_flag(context, "default_permissions", failure) < 0) return -1;
  if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) return fail(failure, "make the file system");
  return 0;
}

static int make_mount(int device, mode_t type, struct failure *failure) {
  int context = (int)syscall(SYS_fsopen, "fuse", FSOPEN_CLOEXEC);
  if (context < 0) return fail(failure, "open a fuse context");
  int mount = -1;
  if (configure(context, device, type, failure) == 0) {
    mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
    if (mount < 0) fail(failure, "mount the file system");
  }
  close(context);
  return mount;
}

static int set_actions(posix_spawn_file_actions_t *actions, int device, int source) {
  int error = 0;
  for (int stream = 0; stream < 3 && error == 0; stream++) {
    error = posix_spawn_file_actions_addopen(actions, stream, "/dev/null", O_RDWR, 0);
  }
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, device, 3);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, source, 4);
  // SAFETY: it lives as long as a sandbox, so it must not inherit other descriptors of ours.
  return error == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, 5) : error;
}

static int spawn_server(const struct serve_plan *plan, int device, int source, struct failure *failure) {
  char text[PLAN_NUMBERS][16];
  const uint32_t numbers[PLAN_NUMBERS] = {
      plan->users.id_base,  plan->users.disk_base,  plan->users.disk_owner,    plan->users.shown,
      plan->groups.id_base, plan->groups.disk_base, plan->groups.disk_owner,   plan->groups.shown,
      plan->quota_mib,      plan->overlay.kind,     plan->overlay.is_mirrored,
  };
  char *command[PLAN_NUMBERS + 3] = {(char *)"svc-host", (char *)"--serve-folder"};
  for (int index = 0; index < PLAN_NUMBERS; index++) {
    snprintf(text[index], sizeof text[index], "%u", numbers[index]);
    command[index + 2] = text[index];
  }
  char *environment[] = {NULL};
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return fail_with(failure, ENOMEM, "start the server");
  pid_t pid;
  int error = set_actions(&actions, device, source);
  // SAFETY: our own program, by a path that only root can change; the arguments are numbers.
  if (error == 0) error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, command, environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_with(failure, error, "start the server");
  int status = 0;
  // The started process forks the server and ends. The server is not our child, so it need not be reaped.
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status == 0 ? 0 : fail_with(failure, EIO, "start the server");
}

/** Copies of the descriptors at numbers that do not collide with the server's. */
static int start_server(const struct serve_plan *plan, int device, struct failure *failure) {
  int high_device = fcntl(device, F_DUPFD_CLOEXEC, FIRST_UNUSED);
  int high_source = fcntl(plan->source, F_DUPFD_CLOEXEC, FIRST_UNUSED);
  int outcome = high_device < 0 || high_source < 0 ? fail(failure, "copy descriptors")
                                                   : spawn_server(plan, high_device, high_source, failure);
  if (high_device >= 0) close(high_device);
  if (high_source >= 0) close(high_source);
  return outcome;
}

int mount_served(const struct serve_plan *plan, struct failure *failure) {
  struct stat status;
  if (fstat(plan->source, &status) < 0) return fail(failure, "inspect the folder");
  if (plan->overlay.kind == STAT_STRICT && !has_stat_attributes(plan->source)) {
    return fail_with(failure, EOPNOTSUPP, "the file system has no extended attributes");
  }
  int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return fail_with(failure, ENODEV, "open the fuse device");
  int mount = make_mount(device, status.st_mode & S_IFMT, failure);
  if (mount >= 0 && start_server(plan, device, failure) < 0) {
    close(mount);
    mount = -1;
  }
  close(device);
  return mount;
}
