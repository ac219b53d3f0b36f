#ifndef SVC_SLOW_CALL_H
#define SVC_SLOW_CALL_H

#include <stdbool.h>

#include "request.h"

/**
 * Runs calls that may have to write out a whole disk in their own threads, which also answer. False when this is no such
 * call or no thread can be made: then it is run like any other.
 */
bool start_slow_call(const struct request *request);

#endif
