#ifndef SVC_LOOP_H
#define SVC_LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "failure.h"

/** Puts `file` on a free loop device and returns the open device; its path is written to `device`. Released with its last user. */
int attach_loop(int file, bool readonly, char *device, size_t device_size, struct failure *failure);

#endif
