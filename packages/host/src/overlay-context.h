#ifndef SVC_OVERLAY_CONTEXT_H
#define SVC_OVERLAY_CONTEXT_H

#include <limits.h>

#include "failure.h"
#include "overlay.h"

/*
 * What an overlay is made of: id-mapped, detached copies of the mounts below it. `disk` is a copy of the folder that
 * holds upper and work, because the kernel wants both on one mount.
 */
struct overlay_parts {
  size_t layer_count;
  int layers[MAX_LAYERS]; /* topmost first, as the kernel counts */
  int disk;
  char disk_folder[PATH_MAX];
  const char *upper_name;
  const char *work_name;
};

/*
 * Two ways to the same overlay. Each returns a detached mount, shows no host path in its options, and keeps nothing else
 * mounted: the overlay holds private copies of its parts.
 */

/* Hands the parts to the kernel as descriptors. Kernels before 6.15 refuse. */
int overlay_from_descriptors(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure);
/* Names the parts below a private tmpfs that covers `target` for the moment. Works since 5.19. */
int overlay_from_names(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure);

#endif
