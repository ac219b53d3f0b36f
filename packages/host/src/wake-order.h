#ifndef SVC_WAKE_ORDER_H
#define SVC_WAKE_ORDER_H

#include <sys/types.h>

#include "failure.h"

/** From now on this thread, and what it starts, waits for its turn when it wakes: it interrupts nobody (`SCHED_BATCH`). */
int wake_in_turn(struct failure *failure);

/**
 * All threads of a process that wake in turn interrupt whoever runs from now on, and what waits for its turn beside them gives way to them.
 * Succeeds when there is no such process.
 */
int go_first(pid_t pid, struct failure *failure);

#endif
