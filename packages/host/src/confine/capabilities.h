#ifndef SVC_CONFINE_CAPABILITIES_H
#define SVC_CONFINE_CAPABILITIES_H

#include <stdint.h>

#include "failure.h"

/** Drops all capabilities but those of the mask permanently, also for programs that are executed later. */
int keep_capabilities(uint64_t mask, struct failure *failure);

#endif
