#ifndef SVC_SERVE_QUOTA_H
#define SVC_SERVE_QUOTA_H

#include <stdint.h>
#include <sys/stat.h>

#include "serve/ledger.h"

/**
 * By how much a guest has made the folder grow: the blocks of files and folders beyond what was there, and a flat amount for each
 * of them, so that empty files cannot use up the inodes of the host. What it deletes is given back.
 */
struct quota {
  uint64_t limit_bytes;
  // Below zero when it has deleted more than it has added.
  int64_t growth_bytes;
  struct ledger ledger;
};

enum { BYTES_PER_FILE = 4096 };

static inline uint64_t bytes_of(const struct stat *status) { return (uint64_t)status->st_blocks * 512; }

uint64_t room_in(const struct quota *quota);
uint64_t used_of(const struct quota *quota);

/** A file or folder takes `now`; `before` is what it took when nobody had counted it yet. */
void count_file(struct quota *quota, uint64_t key, uint64_t before, uint64_t now);
void count_new_file(struct quota *quota, uint64_t key, uint64_t now);
/** The last name and the last use of a file that took `now` are gone. */
void count_gone_file(struct quota *quota, uint64_t key, uint64_t now);

#endif
