#ifndef SVC_SHUTDOWN_H
#define SVC_SHUTDOWN_H

#include <stdint.h>

/** SIGTERM to everything, SIGKILL to the rest after the grace, then sync and exit 0. Again: only shortens the grace. */
void shutdown_begin(uint64_t grace_ms);

#endif
