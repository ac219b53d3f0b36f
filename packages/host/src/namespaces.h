#ifndef SVC_NAMESPACES_H
#define SVC_NAMESPACES_H

#include "failure.h"
#include "link.h"

/**
 * Makes a user namespace that maps IDS_PER_SANDBOX ids from `id_base` on and a network namespace owned by it, both pinned
 * as bind mounts on new files. With `link` also the veth pair. On failure nothing is left.
 */
int create_namespaces(const char *user_path, const char *network_path, uint32_t id_base, const struct link_plan *link,
                      struct failure *failure);

/** Unpins and deletes one file; succeeds when it is missing. */
int remove_pin(const char *path, struct failure *failure);

#endif
