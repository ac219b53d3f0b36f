#ifndef SVC_PRECISION_H
#define SVC_PRECISION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "failure.h"

/**
 * Lets timers of all threads of a process fire up to `slack_ns` late. With `is_interrupt` threads that sleep until a timer that was set
 * before are woken, in programs that expect SIGURG: those written in Go. Succeeds also when there is no such process, and without
 * CAP_SYS_NICE, as in a container.
 */
int set_precision(pid_t pid, uint32_t slack_ns, bool is_interrupt, struct failure *failure);

#endif
