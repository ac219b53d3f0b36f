#ifndef SVC_FILE_ATTRIBUTES_H
#define SVC_FILE_ATTRIBUTES_H

#include "files/request.h"
#include "wire/conn.h"

// Each function answers its request, now or later.
void file_setstat(struct conn *, uint32_t id, struct file_request *);
void file_fsetstat(struct conn *, uint32_t id, struct file_request *);

#endif
