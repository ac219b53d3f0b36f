#include "unmount.h"

#include <errno.h>
#include <sys/mount.h>

/** More mounts than anyone stacks; the bound only keeps a racing mounter from holding us forever. */
enum { MAX_STACKED = 1000 };

int unmount_all(const char *target, struct failure *failure) {
  for (int round = 0; round < MAX_STACKED; round++) {
    if (umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) continue;
    // EINVAL: not a mount point (any more).
    if (errno == EINVAL || errno == ENOENT) return 0;
    return fail(failure, "unmount");
  }
  return fail_with(failure, EBUSY, "unmount");
}
