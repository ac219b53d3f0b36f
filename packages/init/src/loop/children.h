#ifndef SVC_CHILDREN_H
#define SVC_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

// The children that PID 1 waits for. All others (orphans of the guest) are reaped without a record.
struct child {
  struct child *next;
  pid_t pid; // 0: not in the table
  void (*exited)(struct child *, int status);
};

/** Blocks the signals and watches SIGCHLD and SIGTERM; call before the first fork. `stop`: the runtime asks us to end. */
void children_init(void (*stop)(void));
void child_add(struct child *, pid_t pid, void (*exited)(struct child *, int status));
void child_remove(struct child *);
/** Called once when no child at all is left, while a caller waits for it. */
void children_when_none(void (*none)(void));
/** Restores the default signal state. For forked children, before exec. */
void signals_reset(void);

#endif
