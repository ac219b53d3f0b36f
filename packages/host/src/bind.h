#ifndef SVC_BIND_H
#define SVC_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"
#include "serve/stat-plan.h"

/** The owner ids of the files on disk. */
enum stored_as {
  // Those of the guest, mapped by its user namespace.
  STORED_AS_GUEST,
  // A volume: those of the guest; files of id 0 appear as the owner's.
  STORED_AS_VOLUME,
  // A folder of the host: files of the folder's owner appear as the owner's, other users of the guest keep their host ids.
  STORED_AS_FOLDER,
};

struct bind_plan {
  const char *root;
  const char *path;
  const char *target;
  bool readonly, noexec;
  const char *user_path; // NULL: no id mapping
  uint32_t id_base;
  enum stored_as stored_as;
  uint32_t owner_uid, owner_gid;
  uint32_t quota_mib;       // 0: none
  struct stat_plan overlay; // of a writable folder of the host
};

/**
 * Binds root/path, resolved inside root, at target, which is made when it is missing. nodev, nosuid. `kind` is "file" or "directory".
 * A writable folder of the host, and any bind with a quota, is not bound but served (see serve/), and so is any folder whose file system
 * cannot map ids. Served from a read-only copy of its mount, it is read-only.
 */
int bind_inside(const struct bind_plan *plan, const char **kind, struct failure *failure);

#endif
