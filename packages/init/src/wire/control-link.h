#ifndef SVC_CONTROL_LINK_H
#define SVC_CONTROL_LINK_H

#include <sys/types.h>

#include "wire/conn.h"

// The one connection for requests of the engine. It may be down at any time. Its requests: dispatch/control.h.
struct conn *control(void); // NULL while the engine is away
void control_set(struct conn *);

/** Sends a notification (id 0) when the engine is connected, and frees the writer. */
void control_notify(const char *type, struct writer *payload);
/** Asks why a process died: `svc.killed` or `svc.failed`. The id of the question, 0 without an engine. */
uint32_t control_ask(const char *type, pid_t pid);

#endif
