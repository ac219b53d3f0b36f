#ifndef SVC_OVERLAY_H
#define SVC_OVERLAY_H

#include <stdbool.h>

#include "failure.h"
#include "overlay-parts.h"

/** Set by `--overlay-by-names`: do as on kernels before 6.15, so that tests cover it on any kernel. */
extern bool overlay_by_names_only;

/** Mounts the layers under upper and work at target, ids mapped, nodev, nosuid. On failure nothing is mounted. */
int mount_overlay(const struct overlay_plan *plan, struct failure *failure);

#endif
