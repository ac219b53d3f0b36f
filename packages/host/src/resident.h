#ifndef SVC_RESIDENT_H
#define SVC_RESIDENT_H

#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

#include "failure.h"

/*
 * A short-lived process inside new namespaces: it keeps them alive until they are pinned or opened, and does what can only
 * be done from inside. It is killed by `end_resident`, or by the kernel when the helper dies.
 */
struct resident {
  pid_t pid;
  int channel;
};

/* `length` ids from `inside` on (as seen in the namespace) are `outside` and up on the host. */
struct id_range {
  uint32_t inside, outside, length;
};

/*
 * Runs `live(channel, context)` in new namespaces (CLONE_NEW*); `live` talks to us over the channel and may return. It must not
 * allocate memory: a thread of the helper may have held the allocator's lock at the moment of the fork.
 */
int start_resident(struct resident *resident, int namespaces, void (*live)(int channel, const void *context),
                   const void *context, struct failure *failure);
void end_resident(const struct resident *resident);

/* A life that only waits for the end. */
void wait_inside(int channel, const void *context);

int write_maps(const struct resident *resident, const struct id_range *users, const struct id_range *groups,
               struct failure *failure);
/* `kind` as in /proc/PID/ns. */
int open_namespace(const struct resident *resident, const char *kind, struct failure *failure);

#endif
