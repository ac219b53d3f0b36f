#ifndef SVC_FILES_H
#define SVC_FILES_H

#include "conn.h"

// core.fs.*
void files_request(struct conn *, struct message *);
void files_data(struct conn *, struct message *);
/** Closes every handle of a connection that is gone. */
void files_forget(struct conn *);

#endif
