#ifndef SVC_FREEZE_H
#define SVC_FREEZE_H

#include <stdint.h>

#include "failure.h"

/** A writable ext4 image that is mounted, and the file that tells of a freeze and is locked by whoever makes it. */
struct frozen_disk {
  const char *image;
  const char *device; // the loop device that it is on
  const char *mark;
};

/**
 * Copies a mounted image to a new file while its file system stands still: all that was written is in it, and whoever writes waits.
 * ETIMEDOUT when that takes longer than `most_ms`, EBUSY while somebody else has frozen it, ECANCELED when the engine has died meanwhile.
 * Whatever happens, the file system goes on; a copy that fails is deleted. `frozen_us`: how long it stood still.
 */
int copy_frozen(const struct frozen_disk *disk, const char *to, uint32_t most_ms, uint64_t *frozen_us, struct failure *failure);

/** Lets a file system go on that a helper before us has left frozen; EBUSY while one is still at it. Does nothing without a mark. */
int thaw(const struct frozen_disk *disk, struct failure *failure);

#endif
