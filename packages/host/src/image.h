#ifndef SVC_IMAGE_H
#define SVC_IMAGE_H

#include <stdbool.h>

#include "failure.h"

struct image_plan {
  const char *image;
  const char *target;
  const char *fstype;
  bool readonly;
  // Flushes are not passed on to the host's disk (ext4 only).
  bool is_volatile;
};

/**
 * Mounts a file-system image on a loop device that goes away with the last use of the mount. nodev, nosuid.
 * An image has one writable mount at a time: EBUSY until the loop device of an earlier mount is gone. EUCLEAN when a writable ext4 image
 * needs a check first; it is unused then.
 */
int mount_image(const struct image_plan *plan, struct failure *failure);

#endif
