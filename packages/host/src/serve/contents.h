#ifndef SVC_SERVE_CONTENTS_H
#define SVC_SERVE_CONTENTS_H

#include "serve/server.h"

int handle_open(struct server *server, const struct call *call, struct reply *reply);
int handle_read(struct server *server, const struct call *call, struct reply *reply);
int handle_write(struct server *server, const struct call *call, struct reply *reply);
int handle_release(struct server *server, const struct call *call, struct reply *reply);
int handle_fsync(struct server *server, const struct call *call, struct reply *reply);
int handle_fallocate(struct server *server, const struct call *call, struct reply *reply);
int handle_lseek(struct server *server, const struct call *call, struct reply *reply);
/** Registers one more open descriptor of a regular file that takes `bytes` now. */
void note_opened(struct server *server, struct node *node, uint32_t flags, uint64_t bytes);

#endif
