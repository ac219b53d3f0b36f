#ifndef SVC_IDMAP_H
#define SVC_IDMAP_H

#include <stdint.h>

#include "failure.h"
#include "owner-map.h"

/**
 * A detached copy of the mount at directory descriptor `at` + `path` (`""` for the descriptor itself): not in the mount
 * tree, private to this process, released with the descriptor unless it is attached.
 */
int clone_mount(int at, const char *path, struct failure *failure);

/** Applies the id mapping of a user namespace to a detached copy. EOPNOTSUPP when the file system cannot. */
int map_ids(int mount, int user_namespace, struct failure *failure);

/** Sets MOUNT_ATTR_* on a detached copy. */
int restrict_mount(int mount, uint64_t attributes, struct failure *failure);

/** Attaches a detached copy to the mount tree. The last component of `target` is never followed. */
int attach_mount(int mount, const char *target, struct failure *failure);

/** A user namespace with the id maps. */
int open_mapping_namespace(const struct owner_map *users, const struct owner_map *groups, struct failure *failure);

#endif
