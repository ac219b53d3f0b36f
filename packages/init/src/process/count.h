#ifndef SVC_COUNT_H
#define SVC_COUNT_H

#include <stdint.h>

/** Number of processes in the sandbox, this one included; at most COUNTED_MAX. */
uint64_t count_processes(void);

#endif
