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
 * An image is mounted writable once at a time: EBUSY until the loop device of an earlier mount is gone. A writable ext4 image
 * that needs a check first is EUCLEAN; nobody else uses it then.
 */
int mount_image(const struct image_plan *plan, struct failure *failure);

#endif
