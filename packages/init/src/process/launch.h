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

/** The parameters of one start of a process. Strings live in `arena`. */
struct launch {
  struct arena arena;
  char *key; // of a durable or detached process
  char *cmd;
  struct strings args, env;
  char *cwd, *user;
  bool tty, stdin;
  uint64_t rows, cols;
  struct limits rlimits;
  uint64_t timeout_ms, ring_bytes, output_max; // of a detached process, like the next three
  uint64_t stdin_fd;                           // descriptor of its input; its stdin is empty then. 0: stdin
  bool repeat;                                 // it may have been started before
  bool spare;                                  // started before a client asked for it
};

enum launch_kind { LAUNCH_EXEC, LAUNCH_DURABLE, LAUNCH_DETACHED };
/** Reads core.exec.request, svc.process.start and svc.detached.start; absent fields get the defaults of the contract. */
bool launch_read(struct launch *, struct reader *payload, enum launch_kind);
void launch_free(struct launch *);

int resource_named(struct span);                                  // index of a limit; -1: unknown
void field_limits(struct reader *, struct arena *, void *target); // struct limits

#endif
