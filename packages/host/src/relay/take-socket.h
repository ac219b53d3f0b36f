#ifndef SVC_TAKE_SOCKET_H
#define SVC_TAKE_SOCKET_H

#include <stdint.h>

#include "failure.h"

/** A pidfd of the parent process. */
int open_starter(struct failure *failure);

/**
 * A copy of the socket `inode`, which `process` has open as `descriptor`. `ESTALE` when that is another file now: closed
 * descriptor numbers are reused soon.
 */
int take_socket(int process, uint32_t descriptor, uint32_t inode, struct failure *failure);

#endif
