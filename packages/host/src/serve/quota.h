#ifndef SVC_SERVE_QUOTA_H
#define SVC_SERVE_QUOTA_H

#include <stdint.h>
#include <sys/stat.h>

#include "serve/ledger.h"

/**
 * How much a guest has grown the folder: blocks of files and folders beyond the initial ones, and a flat amount for each
 * of them, so that empty files cannot use up the inodes of the host. Deleted files are credited.
 */
struct quota {
  uint64_t limit_bytes;
  // Negative when it has deleted more than it has added.
  int64_t growth_bytes;
  struct ledger ledger;
};

enum { BYTES_PER_FILE = 4096 };

static inline uint64_t bytes_of(const struct stat *status) { return (uint64_t)status->st_blocks * 512; }

uint64_t room_in(const struct quota *quota);
uint64_t used_of(const struct quota *quota);

/** A file or folder takes `now` bytes; `before` is its size when it has no entry yet. */
void count_file(struct quota *quota, uint64_t key, uint64_t before, uint64_t now);
void count_new_file(struct quota *quota, uint64_t key, uint64_t now);
/** The last name and the last use of a file that took `now` are gone. */
void count_gone_file(struct quota *quota, uint64_t key, uint64_t now);

#endif
