#ifndef SVC_SERVE_HANDLERS_H
#define SVC_SERVE_HANDLERS_H

#include "server.h"

/* attributes.c */
int handle_getattr(struct server *server, const struct call *call, struct reply *reply);
int handle_setattr(struct server *server, const struct call *call, struct reply *reply);
int handle_readlink(struct server *server, const struct call *call, struct reply *reply);
int handle_statfs(struct server *server, const struct call *call, struct reply *reply);
/* The mode without the bits that a guest may not leave on the host. */
mode_t permitted_mode(mode_t mode);

/* entries.c */
int handle_lookup(struct server *server, const struct call *call, struct reply *reply);
int handle_create(struct server *server, const struct call *call, struct reply *reply);
int handle_mkdir(struct server *server, const struct call *call, struct reply *reply);
int handle_mknod(struct server *server, const struct call *call, struct reply *reply);
int handle_symlink(struct server *server, const struct call *call, struct reply *reply);
int handle_link(struct server *server, const struct call *call, struct reply *reply);

/* removal.c */
int handle_unlink(struct server *server, const struct call *call, struct reply *reply);
int handle_rmdir(struct server *server, const struct call *call, struct reply *reply);
int handle_rename(struct server *server, const struct call *call, struct reply *reply);
int handle_rename2(struct server *server, const struct call *call, struct reply *reply);

/* contents.c */
int handle_open(struct server *server, const struct call *call, struct reply *reply);
int handle_read(struct server *server, const struct call *call, struct reply *reply);
int handle_write(struct server *server, const struct call *call, struct reply *reply);
int handle_release(struct server *server, const struct call *call, struct reply *reply);
int handle_fsync(struct server *server, const struct call *call, struct reply *reply);
int handle_fallocate(struct server *server, const struct call *call, struct reply *reply);
int handle_lseek(struct server *server, const struct call *call, struct reply *reply);
/* One more opening of a regular file that takes `bytes` now. */
void note_opened(struct server *server, struct node *node, uint32_t flags, uint64_t bytes);

/* listing.c */
int handle_opendir(struct server *server, const struct call *call, struct reply *reply);
int handle_readdir(struct server *server, const struct call *call, struct reply *reply);
int handle_releasedir(struct server *server, const struct call *call, struct reply *reply);

#endif
