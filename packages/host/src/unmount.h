#ifndef SVC_UNMOUNT_H
#define SVC_UNMOUNT_H

#include "failure.h"

/** Detaches every mount stacked at `target` (the last component is never followed); succeeds when there is none. */
int unmount_all(const char *target, struct failure *failure);

#endif
