#ifndef SVC_SHUTDOWN_STATE_H
#define SVC_SHUTDOWN_STATE_H

#include <stdbool.h>

// What processes need to know about the end of everything; dispatch/shutdown.h brings it about.
void shutdown_mark(void);
bool shutdown_is_running(void);

/** Why everything ends, for those whose process ended by it. At most 31 bytes are kept; called before shutdown_begin. */
void shutdown_explain(const char *reason);
const char *shutdown_reason(void); // NULL when nobody said

#endif
