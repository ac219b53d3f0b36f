#ifndef SVC_CONFINE_FILTER_H
#define SVC_CONFINE_FILTER_H

#include <stdbool.h>

#include "failure.h"

/**
 * Loads the seccomp filter of programs that read hostile bytes, for good. It lets files of the folders be read and written, threads
 * be made and, with a network, addresses of it be talked to; all else the kernel does not have for them (ENOSYS).
 */
int load_confined_filter(bool has_network, struct failure *failure);

/**
 * The same with a network, for a program that also takes connections, and becomes another user before it does. Unless it chooses
 * addresses it takes them from sockets that it is given, and gives none of its own an address.
 */
int load_server_filter(bool chooses_address, struct failure *failure);

#endif
