#ifndef SVC_FILE_WATCH_H
#define SVC_FILE_WATCH_H

#include "wire/session.h"

// svc.watch.*: reports changes below a path to a client.
void file_watch_start(struct conn *, struct message *);
void file_watch_stop(struct conn *, struct message *);

#endif
