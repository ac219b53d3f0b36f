#ifndef SVC_COUNT_H
#define SVC_COUNT_H

#include <stdint.h>

/** How many processes there are in the sandbox, this one included; at most COUNTED_MAX are told. */
uint64_t count_processes(void);

#endif
