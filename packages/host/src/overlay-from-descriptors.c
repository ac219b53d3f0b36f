#include "overlay-from-descriptors.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "privileges.h"

static int set_fd(int context, const char *key, int fd, struct failure *failure) {
  if (syscall(SYS_fsconfig, context, FSCONFIG_SET_FD, key, NULL, fd) == 0) return 0;
  return fail(failure, "set %s of the overlay", key);
}

static int set_folder(int context, const char *key, int disk, const char *name, struct failure *failure) {
  int folder = openat(disk, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return fail(failure, "open %s of the overlay", key);
  int outcome = set_fd(context, key, folder, failure);
  close(folder);
  return outcome;
}

static int configure(int context, const struct overlay_parts *parts, struct failure *failure) {
  if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "source", "overlay", 0) < 0) return fail(failure, "name the overlay");
  for (size_t index = 0; index < parts->layer_count; index++) {
    if (set_fd(context, "lowerdir+", parts->layers[index], failure) < 0) return -1;
  }
  if (set_folder(context, "upperdir", parts->disk, parts->upper_name, failure) < 0) return -1;
  return set_folder(context, "workdir", parts->disk, parts->work_name, failure);
}

int overlay_from_descriptors(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure) {
  int context = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
  if (context < 0) return fail(failure, "open an overlay context");
  int overlay = -1;
  if (configure(context, parts, failure) == 0 && act_as(plan->id_base, failure) == 0) {
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) fail(failure, "make the overlay");
    act_as_root();
    if (failure->error == 0) {
      unsigned attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
      overlay = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
      if (overlay < 0) fail(failure, "mount the overlay");
    }
  }
  close(context);
  return overlay;
}
