#ifndef SVC_FILE_WORK_H
#define SVC_FILE_WORK_H

#include <dirent.h>

#include "file-request.h"
#include "session.h"

// A file or folder a client holds open. Numbers are unique in this program; the owner is one connection.
struct handle {
  struct list in_conn;
  uint64_t number;
  int fd;
  bool is_dir;
  unsigned users; // streams that still read or write through it
  bool is_closed; // closed by the client while a stream used it
  char *path;     // as it was opened; prefix of a folder's entries
};

struct handle *handle_find(struct conn *, uint64_t number);
void handle_unuse(struct handle *);

// One function per operation. Each answers, now or later.
void file_open(struct conn *, uint32_t id, struct file_request *);
void file_open_dir(struct conn *, uint32_t id, struct file_request *);
void file_close(struct conn *, uint32_t id, struct file_request *);
void file_fstat(struct conn *, uint32_t id, struct file_request *);
void file_fsetstat(struct conn *, uint32_t id, struct file_request *);
void file_setstat(struct conn *, uint32_t id, struct file_request *);
void file_list(struct conn *, uint32_t id, struct file_request *);
void file_read_dir(struct conn *, uint32_t id, struct file_request *);
void file_read(struct conn *, uint32_t id, struct file_request *);
void file_write(struct conn *, uint32_t id, struct file_request *);
void file_write_data(struct conn *, uint32_t id, struct span data);
void file_copy(struct conn *, uint32_t id, struct file_request *);
void file_remove_tree(struct conn *, uint32_t id, struct file_request *);

/** Opens a regular file without ever blocking on what else may lie at the path. -1 with errno. */
int open_regular(const char *path, int flags, mode_t mode);

// One entry of a folder, as getdents64 gives it.
struct entry {
  uint64_t inode;
  int64_t next; // where reading goes on after this one
  unsigned short length;
  unsigned char type;
  char name[];
};
long read_entries(int fd, void *buffer, size_t bytes);
static inline bool is_dot(const char *name) { return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])); }

#endif
