#ifndef SVC_SERVE_STAT_OVERLAY_H
#define SVC_SERVE_STAT_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "ledger.h"

struct server;

/* Where owner and mode of a file live that a guest has given it. */
enum stat_kind {
  /* In the file itself, as far as a guest may change it. */
  STAT_OFF,
  /* In an extended attribute where the file system has them, else in the memory of the server. */
  STAT_RELAXED,
  /* In an extended attribute. */
  STAT_STRICT,
};

struct stat_plan {
  enum stat_kind kind;
  /* The read, write and execute bits of files and folders are set on the host as well. */
  bool is_mirrored;
};

/*
 * Lies over the files of the host: whom a guest sees as owner, and with which mode, when the guest has changed them. What it has not
 * changed is the host's. Links, sockets and pipes can have no attribute: what is said of them is remembered while the server lives.
 */
struct stat_overlay {
  struct stat_plan plan;
  bool has_attributes;
  struct ledger remembered;
};

/* As the guest sees it; the ids are those that live on the host for guest users. */
struct appearance {
  uint32_t uid, gid;
  mode_t mode;
};

/* True when files of this file system can have the attribute. */
bool has_stat_attributes(int fd);

/* `key`: of the file's node. */
struct appearance appearance_of(const struct server *server, int fd, const struct stat *status, uint64_t key);

/* From now on the guest sees the file so. Returns 0 or an errno. `status`: as it is on the host. */
int keep_appearance(struct server *server, int fd, const struct stat *status, uint64_t key, const struct appearance *wanted);

#endif
