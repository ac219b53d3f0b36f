#ifndef SVC_LOOP_H
#define SVC_LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "failure.h"

/** Attaches `file` to a free loop device and returns the open device; writes its path to `device`. Released with its last user. */
int attach_loop(int file, bool readonly, char *device, size_t device_size, struct failure *failure);

/** Device numbers are reused at once: ENXIO when the image of `loop` is not `image`. */
int check_loop(int loop, const char *image, struct failure *failure);

/** Switches the device to direct I/O: writes bypass the page cache of the image's file system. */
int write_directly(const char *device, const char *image, struct failure *failure);

#endif
