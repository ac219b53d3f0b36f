#ifndef SVC_CHILDREN_H
#define SVC_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

// Every child PID 1 cares about. All others (orphans of the guest) are reaped and forgotten.
struct child {
  struct child *next;
  pid_t pid; // 0: not in the table
  void (*exited)(struct child *, int status);
};

/** Blocks the signals and watches SIGCHLD and SIGTERM; call before the first fork. `stop`: the runtime wants us to end. */
void children_init(void (*stop)(void));
void child_add(struct child *, pid_t pid, void (*exited)(struct child *, int status));
void child_remove(struct child *);
/** Called once the kernel says that no child at all is left, while someone waits for it. */
void children_when_none(void (*none)(void));
/** Puts the signal state back to what a fresh process expects. For forked children, before exec. */
void signals_reset(void);

#endif
