#ifndef SVC_OWN_NETWORK_H
#define SVC_OWN_NETWORK_H

#include "failure.h"
#include "link.h"

/**
 * Moves this process into a new network namespace that is linked to the one it was in, and replaces a link of that name. Open sockets
 * stay in the old one. The namespace and the link end with the last process inside. Needs /proc.
 */
int enter_own_network(const struct link_plan *plan, struct failure *failure);

#endif
