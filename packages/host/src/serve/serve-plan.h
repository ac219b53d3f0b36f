#ifndef SVC_SERVE_SERVE_PLAN_H
#define SVC_SERVE_SERVE_PLAN_H

#include <stdint.h>

#include "owner-map.h"
#include "serve/stat-plan.h"

struct serve_plan {
  // A descriptor, open for reading, on the folder or file; mounts below it are not shown.
  int source;
  struct owner_map users, groups;
  // How much a guest may add; 0 for no limit.
  uint32_t quota_mib;
  struct stat_plan overlay;
};

/** How many numbers encode a plan as arguments of the server. */
enum { PLAN_NUMBERS = 11 };

#endif
