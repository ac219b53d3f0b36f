#ifndef SVC_SERVE_MOUNT_SERVED_H
#define SVC_SERVE_MOUNT_SERVED_H

#include "failure.h"
#include "serve/serve-plan.h"

/**
 * A detached mount that shows the folder, served by a process of its own. EOPNOTSUPP when the overlay is strict and the file system has
 * no extended attributes for it. The process needs nobody: it outlives this one, and ends
 * when the mount is gone from everywhere.
 */
int mount_served(const struct serve_plan *plan, struct failure *failure);

#endif
