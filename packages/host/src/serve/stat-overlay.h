#ifndef SVC_SERVE_STAT_OVERLAY_H
#define SVC_SERVE_STAT_OVERLAY_H

#include "serve/server.h"

/** True when files of this file system support the attribute. */
bool has_stat_attributes(int fd);

/** `key`: of the file's node. */
struct appearance appearance_of(const struct server *server, int fd, const struct stat *status, uint64_t key);

/** Sets the guest's view of the file. Returns 0 or an errno. `status`: its attributes on the host. */
int keep_appearance(struct server *server, int fd, const struct stat *status, uint64_t key, const struct appearance *wanted);

#endif
