#ifndef SVC_SERVE_MOUNT_SERVED_H
#define SVC_SERVE_MOUNT_SERVED_H

#include "failure.h"
#include "serve/serve-plan.h"

/**
 * A detached mount that shows the folder, served by its own process. EOPNOTSUPP when the overlay is strict and the file system has
 * no extended attributes. The server outlives this process, and ends when the last
 * copy of the mount is gone.
 */
int mount_served(const struct serve_plan *plan, struct failure *failure);

#endif
