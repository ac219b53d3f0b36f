#include "freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "copy.h"
#include "loop.h"

static int64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/** A second mount of the same device: two mounts of one ext4 share one file system. */
static int mount_again(const char *device, struct failure *failure) {
  int context = (int)syscall(SYS_fsopen, "ext4", FSOPEN_CLOEXEC);
  if (context < 0) return fail(failure, "open an ext4 context");
  int mount = -1;
  if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
      syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
    fail(failure, "read the device");
  } else {
    mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    if (mount < 0) fail(failure, "mount the device again");
  }
  close(context);
  return mount;
}

/** Opens the root of the file system. Guests use an overlay over it, which cannot be frozen. */
static int open_root(const struct frozen_disk *disk, struct failure *failure) {
  // While it is open, the device cannot be given to another image.
  int loop = open(disk->device, O_RDONLY | O_CLOEXEC), root = -1;
  if (loop < 0) return fail(failure, "open the loop device");
  int mount = check_loop(loop, disk->image, failure) == 0 ? mount_again(disk->device, failure) : -1;
  if (mount >= 0) {
    root = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) fail(failure, "open the file system");
    close(mount);
  }
  close(loop);
  return root;
}

struct deadline {
  struct copy_watch watch;
  int64_t at_us;
  pid_t engine;
};

static int may_go_on(const struct copy_watch *watch, struct failure *failure) {
  const struct deadline *deadline = (const struct deadline *)watch;
  if (now_us() > deadline->at_us) return fail_with(failure, ETIMEDOUT, "copy the disk in time");
  // The engine that asked is gone, and the next engine waits for us.
  if (getppid() != deadline->engine) return fail_with(failure, ECANCELED, "copy the disk: the engine has ended");
  return 0;
}

static int copy_standing(int root, const struct frozen_disk *disk, const char *to, uint32_t most_ms, uint64_t *frozen_us,
                         struct failure *failure) {
  // Writes out most data before the freeze blocks writers.
  if (syncfs(root) < 0) return fail(failure, "write the file system out");
  int64_t start_us = now_us();
  struct deadline deadline = {{may_go_on}, start_us + (int64_t)most_ms * 1000, getppid()};
  if (ioctl(root, FIFREEZE, 0) < 0) return fail(failure, "freeze the file system");
  int outcome = copy_sparse(disk->image, to, &deadline.watch, failure);
  bool was_frozen = ioctl(root, FITHAW, 0) == 0;
  *frozen_us = (uint64_t)(now_us() - start_us);
  if (was_frozen || outcome < 0) return outcome;
  unlink(to);
  return fail(failure, "keep the file system frozen");
}

/** Opens and locks the mark; EBUSY while another process has it locked. Retries when it was deleted before the lock was taken. */
static int lock_mark(const char *path, int flags, struct failure *failure) {
  for (;;) {
    int mark = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (mark < 0) return fail(failure, "open the mark");
    struct stat status;
    if (flock(mark, LOCK_EX | LOCK_NB) < 0) {
      fail_with(failure, errno == EWOULDBLOCK ? EBUSY : errno, "lock the mark");
    } else if (fstat(mark, &status) < 0) {
      fail(failure, "inspect the mark");
    } else if (status.st_nlink > 0) {
      return mark;
    }
    close(mark);
    if (failure->error != 0) return -1;
  }
}

int copy_frozen(const struct frozen_disk *disk, const char *to, uint32_t most_ms, uint64_t *frozen_us, struct failure *failure) {
  // SAFETY: a freeze outlives the process that made it. The mark exists before it, so that the next engine finds it, and is locked as
  // long as a running process will end the freeze.
  bool was_left = access(disk->mark, F_OK) == 0;
  int mark = lock_mark(disk->mark, O_CREAT, failure);
  if (mark < 0) return -1;
  int root = open_root(disk, failure);
  // The mark is from a killed helper; a freeze without a mark is that of another program, and is kept.
  if (root >= 0 && was_left) ioctl(root, FITHAW, 0);
  int outcome = root < 0 ? -1 : copy_standing(root, disk, to, most_ms, frozen_us, failure);
  unlink(disk->mark);
  if (root >= 0) close(root);
  close(mark);
  return outcome;
}

int thaw(const struct frozen_disk *disk, struct failure *failure) {
  struct failure unlocked = {0};
  // A locked mark belongs to a running process, which ends the freeze.
  int mark = lock_mark(disk->mark, 0, &unlocked);
  if (mark < 0 && unlocked.error == ENOENT) return 0;
  if (mark < 0) return fail_with(failure, unlocked.error, "%s", unlocked.step);
  int root = open_root(disk, failure), outcome = -1;
  if (root >= 0) {
    // EINVAL: it is not frozen.
    outcome = ioctl(root, FITHAW, 0) == 0 || errno == EINVAL ? 0 : fail(failure, "thaw the file system");
    close(root);
  }
  if (outcome == 0) unlink(disk->mark);
  close(mark);
  return outcome;
}
