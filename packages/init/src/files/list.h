#ifndef SVC_FILE_LIST_H
#define SVC_FILE_LIST_H

#include "files/request.h"
#include "wire/conn.h"

// Each function answers its request, now or later.
void file_list(struct conn *, uint32_t id, struct file_request *);
void file_read_dir(struct conn *, uint32_t id, struct file_request *);

#endif
