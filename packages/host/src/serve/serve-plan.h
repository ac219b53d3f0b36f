#ifndef SVC_SERVE_SERVE_PLAN_H
#define SVC_SERVE_SERVE_PLAN_H

#include <stdint.h>

#include "owner-map.h"
#include "serve/stat-plan.h"

struct serve_plan {
  // A descriptor, open for reading, on the folder or file; whatever is mounted below it is not shown.
  int source;
  struct owner_map users, groups;
  // How much a guest may add; 0 for any amount.
  uint32_t quota_mib;
  struct stat_plan overlay;
};

/** How many numbers say a plan to the process that serves it. */
enum { PLAN_NUMBERS = 11 };

#endif
