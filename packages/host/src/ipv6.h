#ifndef SVC_IPV6_H
#define SVC_IPV6_H

#include <stdbool.h>

#include "failure.h"

/** Turns IPv6 off on an interface that is down, so that it never gets a link-local address. Succeeds on a kernel without IPv6. */
int disable_ipv6(const char *interface, struct failure *failure);

/** Turns IPv6 on, without automatic addresses: neither a link-local one nor one from router advertisements. */
int enable_ipv6(const char *interface, struct failure *failure);

/**
 * Sets the default for new interfaces in the network namespace of the calling process. Unlike the setting of an existing interface it does
 * not take the kernel's lock for all interfaces.
 */
int set_ipv6_of_new_interfaces(bool is_on, struct failure *failure);

#endif
