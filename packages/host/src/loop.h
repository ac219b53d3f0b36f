#ifndef SVC_LOOP_H
#define SVC_LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "failure.h"

/** Puts `file` on a free loop device and returns the open device; its path is written to `device`. Released with its last user. */
int attach_loop(int file, bool readonly, char *device, size_t device_size, struct failure *failure);

/** Device numbers are given to another image as soon as they are free: ENXIO when `loop` is not that of `image`. */
int check_loop(int loop, const char *image, struct failure *failure);

/** From now on what is written to the device goes to the disk without being copied to the page cache of the image's file system. */
int write_directly(const char *device, const char *image, struct failure *failure);

#endif
