#ifndef SVC_CONFINE_CAPABILITIES_H
#define SVC_CONFINE_CAPABILITIES_H

#include <stdint.h>

#include "failure.h"

/** Gives up all capabilities but those of the mask, for good: what is executed from here on has no others. */
int keep_capabilities(uint64_t mask, struct failure *failure);

#endif
