#ifndef SVC_CHILD_H
#define SVC_CHILD_H

#include "process/launch.h"

/** All that a new process needs to become its program. Nothing of it changes while the process reads it. */
struct plan {
  struct launch launch;
  struct identity identity;
  struct limits defaults; // of the sandbox; those of the launch come after
  const struct rlimit *own_limits;
  char **argv, **environment;
  const char *cwd;
  int stdio[3]; // its own ends
  int error;
  uint64_t mark; // tree-kill.h
};

/**
 * Becomes the program of the plan, in a new process; what goes wrong is written to `error` as a `struct failure`.
 * SAFETY: the memory may be that of PID 1, which goes on meanwhile. Only the stack is written to: no errno (so no call of the C library
 * that sets it), no allocation, nothing that keeps a state of its own.
 */
_Noreturn void child_run(struct plan *);

#endif
