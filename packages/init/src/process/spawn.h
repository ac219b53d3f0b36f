#ifndef SVC_SPAWN_H
#define SVC_SPAWN_H

#include "process/launch.h"
#include "process/spawn-stack.h"
#include "wire/failure.h"

enum { STREAM_STDOUT = 0, STREAM_STDERR = 1 };

// Descriptors of one starting process; -1 where there is none. All are close-on-exec.
struct spawned {
  pid_t pid;
  uint64_t mark;             // identifies its whole tree, or 0
  struct spawn_stack *stack; // spawn-stack.h; NULL: it has its own memory from the start
  int error;                 // a `struct failure` comes out when the start failed, EOF when the program runs
  int in;                    // write end of stdin, or the terminal
  int output[2];             // read ends; a terminal has only the first
};

/**
 * Starts a process without waiting for it. False: nothing was started and `failure` is filled.
 * The child runs in its own session and process group, so signalling -pid reaches the whole group.
 */
bool spawn(struct launch *, struct spawned *, struct failure *);

/** Saves the limits that PID 1 was given (children get these), then raises its own number of descriptors. */
void spawn_init(void);

#endif
