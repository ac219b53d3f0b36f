#ifndef SVC_FREEZE_H
#define SVC_FREEZE_H

#include <stdint.h>

#include "failure.h"

/** A mounted, writable ext4 image, and the mark: a file that exists and is locked during a freeze. */
struct frozen_disk {
  const char *image;
  const char *device; // its loop device
  const char *mark;
};

/**
 * Copies a mounted image to a new file while its file system is frozen: all earlier writes are in the copy, and new ones block.
 * ETIMEDOUT when that takes longer than `most_ms`, EBUSY while another program has frozen it, ECANCELED when the engine has died meanwhile.
 * The file system is thawed in every case; a failed copy is deleted. `frozen_us`: how long it was frozen.
 */
int copy_frozen(const struct frozen_disk *disk, const char *to, uint32_t most_ms, uint64_t *frozen_us, struct failure *failure);

/** Thaws a file system that an earlier helper left frozen; EBUSY while a running one holds the freeze. Does nothing without a mark. */
int thaw(const struct frozen_disk *disk, struct failure *failure);

#endif
