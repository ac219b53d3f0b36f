#include "idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "resident.h"

int clone_mount(int at, const char *path, struct failure *failure) {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
  if (path[0] == '\0') flags |= AT_EMPTY_PATH;
  int mount = (int)syscall(SYS_open_tree, at, path, flags);
  return mount < 0 ? fail(failure, "copy a mount") : mount;
}

int map_ids(int mount, int user_namespace, struct failure *failure) {
  struct mount_attr change = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)user_namespace};
  if (syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &change, sizeof change) == 0) return 0;
  // The copy is new and the namespace has its maps, so the file system does not support it, like NFS, or tmpfs before Linux 6.3.
  if (errno == EINVAL) return fail_with(failure, EOPNOTSUPP, "map the ids of a mount, which its file system cannot on this kernel");
  return fail(failure, "map the ids of a mount");
}

int restrict_mount(int mount, uint64_t attributes, struct failure *failure) {
  struct mount_attr change = {.attr_set = attributes};
  if (syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &change, sizeof change) == 0) return 0;
  return fail(failure, "restrict a mount");
}

int attach_mount(int mount, const char *target, struct failure *failure) {
  if (syscall(SYS_move_mount, mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0) return 0;
  return fail(failure, "attach the mount");
}

int open_mapping_namespace(const struct owner_map *users, const struct owner_map *groups, struct failure *failure) {
  struct resident resident = {0};
  const struct new_namespaces namespaces = {.kinds = CLONE_NEWUSER};
  if (start_resident(&resident, &namespaces, wait_inside, NULL, failure) < 0) return -1;
  struct id_ranges user_ids, group_ids;
  user_ids.count = ranges_of(users, user_ids.ranges);
  group_ids.count = ranges_of(groups, group_ids.ranges);
  int namespace = -1;
  if (write_maps(&resident, &user_ids, &group_ids, failure) == 0) namespace = open_namespace(&resident, "user", failure);
  end_resident(&resident);
  return namespace;
}
