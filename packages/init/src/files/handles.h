#ifndef SVC_FILE_HANDLES_H
#define SVC_FILE_HANDLES_H

#include <sys/types.h>

#include "files/request.h"
#include "wire/conn.h"

// A file or folder that a client holds open. Numbers are unique in this program; the owner is one connection.
struct handle {
  struct list in_conn;
  uint64_t number;
  int fd;
  bool is_dir;
  bool is_temporary; // deleted with its handle, unless it was renamed
  unsigned users;    // streams that read or write through it
  bool is_closed;    // closed by the client while a stream used it
  char *path;        // as it was opened; prefix of a folder's entries
};

struct handle *handle_find(struct conn *, uint64_t number);
void handle_unuse(struct handle *);

/** Closes every handle of a connection that is gone. */
void files_forget(struct conn *);
/** Opens a regular file; never blocks on a file of another type at the path. -1 with errno. */
int open_regular(const char *path, int flags, mode_t mode);

// Each function answers its request, now or later.
void file_open(struct conn *, uint32_t id, struct file_request *);
void file_open_dir(struct conn *, uint32_t id, struct file_request *);
void file_close(struct conn *, uint32_t id, struct file_request *);
void file_fstat(struct conn *, uint32_t id, struct file_request *);

#endif
