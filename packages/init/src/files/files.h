#ifndef SVC_FILES_H
#define SVC_FILES_H

#include "wire/conn.h"

// core.fs.*
void files_request(struct conn *, struct message *);
void files_data(struct conn *, struct message *);

#endif
