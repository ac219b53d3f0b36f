#ifndef SVC_PRECISION_H
#define SVC_PRECISION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "failure.h"

/**
 * Timers of all threads of a process go off up to so many nanoseconds late from now on. With `is_interrupt` whoever sleeps by one that was
 * set before wakes up now, in programs that take SIGURG for that: those written in Go. Succeeds when there is no such process, and where
 * this program may not: in a container without CAP_SYS_NICE.
 */
int set_precision(pid_t pid, uint32_t slack_ns, bool is_interrupt, struct failure *failure);

#endif
