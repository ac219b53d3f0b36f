#ifndef SVC_IPV6_H
#define SVC_IPV6_H

#include <stdbool.h>

#include "failure.h"

/** Of one interface that is down, so that it never gets a link-local address. A kernel without IPv6 has nothing to turn off. */
int disable_ipv6(const char *interface, struct failure *failure);

/** The same: it is on, and the interface gets no address by itself, neither a link-local one nor one that a neighbour announces. */
int enable_ipv6(const char *interface, struct failure *failure);

/**
 * Of interfaces that the network namespace of the calling process is yet to get. Unlike the setting of an interface that exists it is
 * not behind the kernel's one lock for all interfaces.
 */
int set_ipv6_of_new_interfaces(bool is_on, struct failure *failure);

#endif
