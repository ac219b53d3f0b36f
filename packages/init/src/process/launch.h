#ifndef SVC_LAUNCH_H
#define SVC_LAUNCH_H

#include <sys/resource.h>
#include <sys/types.h>

#include "bounds.h"
#include "wire/cbor-read.h"

struct limit {
  int resource;
  rlim_t soft, hard;
};

struct limits {
  struct limit at[LIMITS_MAX];
  size_t count;
};

struct identity {
  uid_t uid;
  gid_t gid;
  gid_t groups[GROUPS_MAX];
  size_t group_count;
  char home[256];
};

/** What one start of a process asks for. Strings live in `arena`. */
struct launch {
  struct arena arena;
  char *key; // of a durable or detached process
  char *cmd;
  struct strings args, env;
  char *cwd, *user;
  bool tty, stdin;
  uint64_t rows, cols;
  struct limits rlimits;
  uint64_t timeout_ms, ring_bytes, output_max; // of a detached process, and so are the next two
  uint64_t stdin_fd;                           // where it finds its input; its stdin is empty then. 0: stdin
  bool repeat;                                 // it may have been started already
  bool spare;                                  // nobody has asked for it yet
};

enum launch_kind { LAUNCH_EXEC, LAUNCH_DURABLE, LAUNCH_DETACHED };
/** Reads core.exec.request, svc.process.start and svc.detached.start; what the call leaves out is as the contract says. */
bool launch_read(struct launch *, struct reader *payload, enum launch_kind);
void launch_free(struct launch *);

int resource_named(struct span);                                  // of a limit; -1: there is none
void field_limits(struct reader *, struct arena *, void *target); // struct limits

#endif
