#ifndef SVC_FILE_ENTRIES_H
#define SVC_FILE_ENTRIES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// One entry of a folder, as returned by getdents64.
struct entry {
  uint64_t inode;
  int64_t next; // position behind this entry
  unsigned short length;
  unsigned char type;
  char name[];
};
static inline long read_entries(int fd, void *buffer, size_t bytes) { return syscall(SYS_getdents64, fd, buffer, bytes); }
static inline bool is_dot(const char *name) { return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])); }

#endif
