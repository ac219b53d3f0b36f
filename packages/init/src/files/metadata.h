#ifndef SVC_FILE_METADATA_H
#define SVC_FILE_METADATA_H

#include "files/request.h"
#include "wire/conn.h"

// Metadata of a file: its extended attributes in the namespace `user`, named without that prefix.
void file_get_metadata(struct conn *, uint32_t id, struct file_request *);
/** Replaces all of it; by path, or by handle where no path is given. */
void file_set_metadata(struct conn *, uint32_t id, struct file_request *);

#endif
