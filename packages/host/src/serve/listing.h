#ifndef SVC_SERVE_LISTING_H
#define SVC_SERVE_LISTING_H

#include "serve/server.h"

int handle_opendir(struct server *server, const struct call *call, struct reply *reply);
int handle_readdir(struct server *server, const struct call *call, struct reply *reply);
int handle_releasedir(struct server *server, const struct call *call, struct reply *reply);

#endif
