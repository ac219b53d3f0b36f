#ifndef SVC_OVERLAY_FROM_NAMES_H
#define SVC_OVERLAY_FROM_NAMES_H

#include "failure.h"
#include "overlay-parts.h"

/**
 * One of two implementations of the overlay mount. Each returns a detached mount, shows no host path in its options, and keeps nothing else
 * mounted: the overlay has private copies of its parts.
 */

/** Mounts the parts by name below a private tmpfs that temporarily covers `target`. Works since 5.19. */
int overlay_from_names(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure);

#endif
