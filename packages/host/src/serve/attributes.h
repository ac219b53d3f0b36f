#ifndef SVC_SERVE_ATTRIBUTES_H
#define SVC_SERVE_ATTRIBUTES_H

#include "serve/server.h"

int handle_getattr(struct server *server, const struct call *call, struct reply *reply);
int handle_setattr(struct server *server, const struct call *call, struct reply *reply);
int handle_readlink(struct server *server, const struct call *call, struct reply *reply);
int handle_statfs(struct server *server, const struct call *call, struct reply *reply);
/** The mode without the bits that a guest must not set on the host. */
mode_t permitted_mode(mode_t mode);

/** Part of a reply. */
void fill_attributes(const struct stat *status, const struct appearance *shown, struct fuse_attr *attributes);

#endif
