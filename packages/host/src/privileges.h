#ifndef SVC_PRIVILEGES_H
#define SVC_PRIVILEGES_H

#include <stdint.h>

#include "failure.h"

/**
 * New files of this process belong to `id` while it keeps every capability. An overlay makes its work files as the user that mounted it:
 * root of the host has no id in the guest's mapping, so such an overlay would be read-only.
 */
int act_as(uint32_t id, struct failure *failure);
int act_as_owner(uint32_t uid, uint32_t gid, struct failure *failure);
void act_as_root(void);

/**
 * User namespaces that this thread makes belong to `id`, while it keeps every capability. The kernel counts the resources of such a
 * namespace (pending signals, timers, message queues, locked memory, processes) for its owner as well.
 */
int own_namespaces_as(uint32_t id, struct failure *failure);
void own_namespaces_as_root(void);

#endif
