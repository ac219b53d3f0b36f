#ifndef SVC_RESIDENT_H
#define SVC_RESIDENT_H

#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

#include "failure.h"
#include "owner-map.h"

/**
 * A short-lived process inside new namespaces: it keeps them alive until they are pinned or opened, and runs the steps that
 * are possible only inside. It is killed by `end_resident`, or by the kernel when the helper dies.
 */
struct resident {
  pid_t pid;
  int channel;
};

/** `kinds`: CLONE_NEW*. `owner`: the host id that the user namespace belongs to; its limits per user are counted for that id. */
struct new_namespaces {
  int kinds;
  uint32_t owner;
};

/**
 * Runs `live(channel, context)` in new namespaces; `live` talks to us over the channel and may return. It must not
 * allocate memory: a thread of the helper may have held the allocator's lock at the moment of the fork.
 */
int start_resident(struct resident *resident, const struct new_namespaces *namespaces,
                   void (*live)(int channel, const void *context), const void *context, struct failure *failure);
void end_resident(const struct resident *resident);

/** A `live` that only waits for the end. */
void wait_inside(int channel, const void *context);

/** Id maps of the namespace: at most MAX_RANGES of each kind. */
struct id_ranges {
  struct id_range ranges[MAX_RANGES];
  size_t count;
};
int write_maps(const struct resident *resident, const struct id_ranges *users, const struct id_ranges *groups,
               struct failure *failure);
/** `kind` as in /proc/PID/ns. */
int open_namespace(const struct resident *resident, const char *kind, struct failure *failure);

#endif
