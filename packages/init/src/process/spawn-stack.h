#ifndef SVC_SPAWN_STACK_H
#define SVC_SPAWN_STACK_H

#include <sys/types.h>

#include "process/child.h"

/**
 * A stack and a plan for a new process that shares the memory of PID 1 until its exec. In gVisor a copy of our memory costs more than the
 * rest of a start; on Linux it costs nothing, and the OOM killer may kill us together with a process that shares our memory. So it is used
 * in gVisor only (SVC_SPAWN=shared).
 *
 * SAFETY: PID 1 runs concurrently (no CLONE_VFORK), so a guest that stops the process blocks no other start: the process keeps its stack, and
 * when all are taken fork is used. A process that may inspect the child may inspect PID 1: both are not dumpable.
 */
struct spawn_stack;

/** Reads SVC_SPAWN. False: its value is unknown. */
bool spawn_stack_init(void);
/** A free stack; NULL: there is none. Released by `spawn_stack_start` when that fails, or by `spawn_stack_release`. */
struct spawn_stack *spawn_stack_take(void);
/** Starts a process by the plan, whose strings are in the arena or live as long as PID 1; takes the arena. The pid, or -1 with errno. */
pid_t spawn_stack_start(struct spawn_stack *, const struct plan *, struct arena *);
/** Frees the stack once the process has left our memory, at the end of its error pipe. Takes the descriptor, which may be -1 without a stack. */
void spawn_stack_release(struct spawn_stack *, int error);

#endif
