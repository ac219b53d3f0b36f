#ifndef SVC_SERVE_STAT_OVERLAY_H
#define SVC_SERVE_STAT_OVERLAY_H

#include "serve/server.h"

/** True when files of this file system can have the attribute. */
bool has_stat_attributes(int fd);

/** `key`: of the file's node. */
struct appearance appearance_of(const struct server *server, int fd, const struct stat *status, uint64_t key);

/** From now on the guest sees the file so. Returns 0 or an errno. `status`: as it is on the host. */
int keep_appearance(struct server *server, int fd, const struct stat *status, uint64_t key, const struct appearance *wanted);

#endif
