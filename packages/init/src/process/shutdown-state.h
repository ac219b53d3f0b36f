#ifndef SVC_SHUTDOWN_STATE_H
#define SVC_SHUTDOWN_STATE_H

#include <stdbool.h>

// State of the shutdown that processes need; dispatch/shutdown.h runs the shutdown.
void shutdown_mark(void);
bool shutdown_is_running(void);

/** The reason in the exit reports of processes that it ends. At most 31 bytes are kept; called before shutdown_begin. */
void shutdown_explain(const char *reason);
const char *shutdown_reason(void); // NULL when none was given

#endif
