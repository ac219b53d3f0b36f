#ifndef SVC_SHUTDOWN_H
#define SVC_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

/** SIGTERM to everything, SIGKILL to the rest after the grace, then sync and exit 0. Again: only shortens the grace. */
void shutdown_begin(uint64_t grace_ms);
bool shutdown_is_running(void);

/** Why everything ends, for those whose process ended by it. At most 31 bytes are kept; called before shutdown_begin. */
void shutdown_explain(const char *reason);
const char *shutdown_reason(void); // NULL when nobody said

#endif
