#ifndef SVC_SERVE_STAT_PLAN_H
#define SVC_SERVE_STAT_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/ledger.h"

/** Where the owner and mode that a guest sets are stored. */
enum stat_kind {
  // In the file itself, as far as a guest may change it.
  STAT_OFF,
  // In an extended attribute where the file system has them, else in the memory of the server.
  STAT_RELAXED,
  // In an extended attribute.
  STAT_STRICT,
};

struct stat_plan {
  enum stat_kind kind;
  // The read, write and execute bits of files and folders are set on the host as well.
  bool is_mirrored;
};

/**
 * An overlay of owners and modes over the files of the host: the guest sees the values that it has set, and otherwise
 * those of the host. Links, sockets and pipes cannot have the attribute: their values are kept in memory while the server runs.
 */
struct stat_overlay {
  struct stat_plan plan;
  bool has_attributes;
  struct ledger remembered;
};

/** The attributes that the guest sees; the ids are the host ids of guest users. */
struct appearance {
  uint32_t uid, gid;
  mode_t mode;
};

#endif
