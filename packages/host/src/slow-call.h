#ifndef SVC_SLOW_CALL_H
#define SVC_SLOW_CALL_H

#include <stdbool.h>

#include "request.h"

/**
 * Calls that may have to write a whole disk out have a thread of their own, which also answers. False when this is no such
 * call or there is no thread to be had: then it is run like any other.
 */
bool start_slow_call(const struct request *request);

#endif
