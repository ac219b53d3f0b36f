#ifndef SVC_CHILD_H
#define SVC_CHILD_H

#include "process/launch.h"

/** All inputs of a new process before exec. They do not change while the process reads them. */
struct plan {
  struct launch launch;
  struct identity identity;
  struct limits defaults; // of the sandbox; those of the launch come after
  const struct rlimit *own_limits;
  char **argv, **environment;
  const char *cwd;
  int stdio[3]; // the child's ends
  int error;
  uint64_t mark; // tree-kill.h
};

/**
 * Executes the program of the plan, in a new process; an error is written to `error` as a `struct failure`.
 * SAFETY: the memory may be shared with PID 1, which runs concurrently. Only the stack is written to: no errno (so no call of the C library
 * that sets it), no allocation, no function with its own state.
 */
_Noreturn void child_run(struct plan *);

#endif
