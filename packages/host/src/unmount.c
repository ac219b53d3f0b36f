#include "unmount.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/** More mounts than are ever stacked; the bound ends a race with a process that keeps mounting. */
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

int remove_folders(const char *folder, uint32_t count, struct failure *failure) {
  char path[PATH_MAX];
  if (strlen(folder) >= sizeof path) return fail_with(failure, ENAMETOOLONG, "remove a folder");
  strcpy(path, folder);
  for (uint32_t removed = 0; removed < count && *path != '\0'; removed++) {
    if (rmdir(path) < 0 && errno != ENOENT) return fail(failure, "remove a folder");
    *strrchr(path, '/') = '\0';
  }
  return 0;
}
