#ifndef SVC_SERVE_ENTRIES_H
#define SVC_SERVE_ENTRIES_H

#include "serve/server.h"

int handle_lookup(struct server *server, const struct call *call, struct reply *reply);
int handle_create(struct server *server, const struct call *call, struct reply *reply);
int handle_mkdir(struct server *server, const struct call *call, struct reply *reply);
int handle_mknod(struct server *server, const struct call *call, struct reply *reply);
int handle_symlink(struct server *server, const struct call *call, struct reply *reply);
int handle_link(struct server *server, const struct call *call, struct reply *reply);

/** The name at the start of `text`, or NULL when it is no plain name of one entry. */
const char *name_in(const char *text, size_t length);

/** Part of a reply: the node of an opened file, with one more lookup counted; an errno on failure. */
int fill_entry(struct server *server, int fd, struct fuse_entry_out *entry);

#endif
