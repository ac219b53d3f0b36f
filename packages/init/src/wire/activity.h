#ifndef SVC_ACTIVITY_H
#define SVC_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

struct writer;

// Reports idleness to the engine: svc.status on every change, but not more often than every 200 ms.
extern struct activity_count {
  unsigned processes, files, streams;
} activity_count;

/** Counts one action of a client or of a process, and returns the new sequence number. */
uint64_t activity(void);
void activity_init(void);
/** The control connection is new: sends the current status. */
void activity_announce(void);

/** True when this is the only process in the sandbox. */
bool is_alone(void);

/** Writes boot_time_ns, init_time_ns and ready_time_ns: 3 pairs. */
void activity_write_times(struct writer *);

#endif
