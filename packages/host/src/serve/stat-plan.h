#ifndef SVC_SERVE_STAT_PLAN_H
#define SVC_SERVE_STAT_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/ledger.h"

/** Where owner and mode of a file live that a guest has given it. */
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
 * Lies over the files of the host: whom a guest sees as owner, and with which mode, when the guest has changed them. What it has not
 * changed is the host's. Links, sockets and pipes can have no attribute: what is said of them is remembered while the server lives.
 */
struct stat_overlay {
  struct stat_plan plan;
  bool has_attributes;
  struct ledger remembered;
};

/** As the guest sees it; the ids are those that live on the host for guest users. */
struct appearance {
  uint32_t uid, gid;
  mode_t mode;
};

#endif
