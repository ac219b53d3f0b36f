#ifndef SVC_DETACHED_PROCESS_H
#define SVC_DETACHED_PROCESS_H

#include "process/detached-record.h"

// The life of a detached process: its output, and its end.
extern const struct process_owner detached_owner;
void detached_destroy(struct detached *);
/** A client uses it: from now on it counts as activity while it runs. */
void detached_use(struct detached *);

#endif
