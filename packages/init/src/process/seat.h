#ifndef SVC_SEAT_H
#define SVC_SEAT_H

#include <sys/types.h>

#include "process/child.h"

/**
 * Where a new process runs in the memory of PID 1 until it has become its program: a stack, and the plan that it reads. In gVisor a
 * copy of our memory costs more than all else that a start takes; on Linux it costs nothing, and a process that shares our memory may
 * take us along when memory runs out. So it is done there alone (SVC_SPAWN=shared).
 *
 * SAFETY: PID 1 goes on meanwhile (no CLONE_VFORK), so a guest that stops the process stops nobody else: it keeps its seat, and when all
 * are kept there is fork. Who may look into the process may look into PID 1: both are not dumpable.
 */
struct seat;

/** Reads SVC_SPAWN. False: it says something unknown. */
bool seat_init(void);
/** A free one; NULL: there is none. It is given back with `seat_start` when that fails, or with `seat_leave`. */
struct seat *seat_take(void);
/** Starts a process by the plan, whose strings are in the arena or live as long as PID 1; the arena is the seat's from then on. The pid, or -1 with errno. */
pid_t seat_start(struct seat *, const struct plan *, struct arena *);
/** The seat is free once the process has left our memory, which the end of its error pipe tells. Takes the descriptor; without a seat there may be none. */
void seat_leave(struct seat *, int error);

#endif
