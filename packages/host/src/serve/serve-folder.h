#ifndef SVC_SERVE_FOLDER_H
#define SVC_SERVE_FOLDER_H

#include <stdint.h>

#include "../failure.h"
#include "../owner-map.h"
#include "stat-overlay.h"

struct serve_plan {
  /* A descriptor, open for reading, on the folder or file; whatever is mounted below it is not shown. */
  int source;
  struct owner_map users, groups;
  /* How much a guest may add; 0 for any amount. */
  uint32_t quota_mib;
  struct stat_plan overlay;
};

/* How many numbers say a plan to the process that serves it. */
enum { PLAN_NUMBERS = 11 };

/*
 * A detached mount that shows the folder, served by a process of its own. EOPNOTSUPP when the overlay is strict and the file system has
 * no extended attributes for it. The process needs nobody: it outlives this one, and ends
 * when the mount is gone from everywhere.
 */
int mount_served(const struct serve_plan *plan, struct failure *failure);

/* The life of that process: what `svc-host --serve-folder` does. Returns its exit status. */
int serve_folder(int count, char **arguments);

#endif
