#ifndef SVC_CONTROL_H
#define SVC_CONTROL_H

#include <sys/types.h>

#include "conn.h"

// The one connection the engine steers us by. It may be away at any time.
extern const struct conn_handler control_handler;
void control_opened(struct conn *);
struct conn *control(void); // NULL while the engine is away

/** Sends a notification (id 0) when the engine is there, and frees the writer. */
void control_notify(const char *type, struct writer *payload);
/** Asks why a process died: `svc.killed` or `svc.failed`. The id of the question, 0 when nobody can be asked. */
uint32_t control_ask(const char *type, pid_t pid);

#endif
