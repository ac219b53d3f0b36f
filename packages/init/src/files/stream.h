#ifndef SVC_FILE_STREAM_H
#define SVC_FILE_STREAM_H

#include "files/request.h"
#include "wire/conn.h"

// Each function answers its request, now or later.
void file_read(struct conn *, uint32_t id, struct file_request *);
void file_write(struct conn *, uint32_t id, struct file_request *);
void file_write_data(struct conn *, uint32_t id, struct span data);

#endif
