#ifndef SVC_OVERLAY_FROM_DESCRIPTORS_H
#define SVC_OVERLAY_FROM_DESCRIPTORS_H

#include "failure.h"
#include "overlay-parts.h"

/**
 * One of two implementations of the overlay mount. Each returns a detached mount, shows no host path in its options, and keeps nothing else
 * mounted: the overlay has private copies of its parts.
 */

/** Passes the parts to the kernel as descriptors. Kernels before 6.15 refuse. */
int overlay_from_descriptors(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure);

#endif
