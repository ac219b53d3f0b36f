#ifndef SVC_UNMOUNT_H
#define SVC_UNMOUNT_H

#include <stdint.h>

#include "failure.h"

/** Detaches every mount stacked at `target` (the last component is never followed); succeeds when there is none. */
int unmount_all(const char *target, struct failure *failure);

/** Removes so many empty folders, from this one upwards; succeeds when they are missing. */
int remove_folders(const char *folder, uint32_t count, struct failure *failure);

#endif
