#ifndef SVC_FILE_COPY_H
#define SVC_FILE_COPY_H

#include "files/request.h"
#include "wire/conn.h"

// Each function answers its request, now or later.
void file_copy(struct conn *, uint32_t id, struct file_request *);

#endif
