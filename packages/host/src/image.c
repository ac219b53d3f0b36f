#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ext4.h"
#include "idmap.h"
#include "loop.h"

static bool is_writable_ext4(const struct image_plan *plan) { return !plan->readonly && strcmp(plan->fstype, "ext4") == 0; }

static int open_image(const char *image, bool readonly, struct failure *failure) {
  int fd = open(image, (readonly ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return fail(failure, "open the image");
  // SAFETY: two loop devices on one image corrupt it. The loop device keeps this very open file, and its lock, until it is
  // released, so the lock tells exactly whether an earlier mount still exists, be it detached or held by a sandbox.
  if (flock(fd, (readonly ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) errno = EBUSY;
  fail(failure, "lock the image: it is still mounted");
  close(fd);
  return -1;
}

static int set_flag(int context, const char *name, struct failure *failure) {
  if (syscall(SYS_fsconfig, context, FSCONFIG_SET_FLAG, name, NULL, 0) == 0) return 0;
  return fail(failure, "set %s", name);
}

static int configure(int context, const char *device, const struct image_plan *plan, struct failure *failure) {
  if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "source", device, 0) < 0) return fail(failure, "set the device");
  if (plan->readonly && set_flag(context, "ro", failure) < 0) return -1;
  if (is_writable_ext4(plan)) {
    // The inode tables of a sparse image are zero already; writing them would only fill the host's disk.
    if (set_flag(context, "noinit_itable", failure) < 0) return -1;
    // Discards blocks that a guest frees at once, so that the image never takes more space than its files.
    if (set_flag(context, "discard", failure) < 0) return -1;
    if (plan->is_volatile && set_flag(context, "nobarrier", failure) < 0) return -1;
  }
  if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) return fail(failure, "read the image");
  return 0;
}

static int open_file_system(const char *device, const struct image_plan *plan, struct failure *failure) {
  int context = (int)syscall(SYS_fsopen, plan->fstype, FSOPEN_CLOEXEC);
  if (context < 0) return fail(failure, "open a %s context", plan->fstype);
  int mount = -1;
  if (configure(context, device, plan, failure) == 0) {
    unsigned attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | (plan->readonly ? MOUNT_ATTR_RDONLY : 0);
    mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
    if (mount < 0) fail(failure, "mount the image");
  }
  close(context);
  return mount;
}

static bool is_allowed(const char *fstype) {
  return strcmp(fstype, "ext4") == 0 || strcmp(fstype, "erofs") == 0 || strcmp(fstype, "squashfs") == 0;
}

int mount_image(const struct image_plan *plan, struct failure *failure) {
  if (!is_allowed(plan->fstype)) return fail_with(failure, EINVAL, "the image is neither ext4 nor erofs nor squashfs");
  int file = open_image(plan->image, plan->readonly, failure);
  if (file < 0) return -1;
  char device[32];
  int loop = -1;
  if (!is_writable_ext4(plan) || check_clean(file, failure) == 0) {
    loop = attach_loop(file, plan->readonly, device, sizeof device, failure);
  }
  close(file);
  if (loop < 0) return -1;
  int mount = open_file_system(device, plan, failure);
  // From here on only the mount holds the device: if attaching fails, closing the mount releases it.
  close(loop);
  if (mount < 0) return -1;
  int outcome = attach_mount(mount, plan->target, failure);
  close(mount);
  return outcome;
}
