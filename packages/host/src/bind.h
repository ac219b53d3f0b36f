#ifndef SVC_BIND_H
#define SVC_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"

struct bind_plan {
  const char *root;
  const char *path;
  const char *target;
  bool readonly;
  const char *user_path; /* NULL: no id mapping */
  uint32_t id_base;
  bool has_owner;
  uint32_t owner_uid, owner_gid;
};

/* Binds root/path, resolved inside root, at target, which is made when it is missing. nodev, nosuid. `kind` is "file" or "directory". */
int bind_inside(const struct bind_plan *plan, const char **kind, struct failure *failure);

#endif
