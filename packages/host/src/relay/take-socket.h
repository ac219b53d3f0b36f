#ifndef SVC_TAKE_SOCKET_H
#define SVC_TAKE_SOCKET_H

#include <stdint.h>

#include "failure.h"

/** A handle of the process that started this one. */
int open_starter(struct failure *failure);

/**
 * A copy of the socket `inode`, which `process` has open as `descriptor`. `ESTALE` when that is something else by now: the number of a
 * descriptor that was closed is soon another connection's.
 */
int take_socket(int process, uint32_t descriptor, uint32_t inode, struct failure *failure);

#endif
