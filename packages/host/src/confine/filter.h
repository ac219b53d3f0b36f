#ifndef SVC_CONFINE_FILTER_H
#define SVC_CONFINE_FILTER_H

#include <stdbool.h>

#include "failure.h"

/**
 * Loads the seccomp filter of programs that read hostile input. They may read and write files, make
 * threads and, with a network, use its sockets; every other call fails with ENOSYS.
 */
int load_confined_filter(bool has_network, struct failure *failure);

/**
 * The same with a network, for a program that also accepts connections, and changes its user first. Unless `chooses_address` is set it
 * accepts them on inherited sockets only, and may not bind its own.
 */
int load_server_filter(bool chooses_address, struct failure *failure);

#endif
