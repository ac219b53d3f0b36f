#ifndef SVC_SERVE_REMOVAL_H
#define SVC_SERVE_REMOVAL_H

#include "serve/server.h"

int handle_unlink(struct server *server, const struct call *call, struct reply *reply);
int handle_rmdir(struct server *server, const struct call *call, struct reply *reply);
int handle_rename(struct server *server, const struct call *call, struct reply *reply);
int handle_rename2(struct server *server, const struct call *call, struct reply *reply);

#endif
