#ifndef SVC_SPAWN_H
#define SVC_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "failure.h"

/** The file mode mask that this program was started with; spawned programs get it back. */
extern mode_t inherited_umask;

struct spawn_plan {
  // The program and its arguments; a program without a slash is looked up on the PATH of `environment`.
  char **command;
  char **environment;
  // Standard streams that end with the program; the null device otherwise.
  bool has_closed_streams;
  // A folder that is empty for the program, in its own mount namespace; NULL for none.
  const char *cover;
  // A descriptor, close-on-exec, that stays open until the program is executed; -1 for none.
  int claim;
};

struct spawned {
  pid_t pid;
  // The other ends of the standard streams, -1 for none.
  int far_ends[3];
};

/**
 * Runs a program in its own session, in the folder /, with no signal blocked or ignored and no open descriptor but its standard
 * streams. Must be called in a thread that does nothing else: it gets its own folder and umask.
 * The caller waits for the process, then calls `close_far_ends`.
 */
int spawn_program(const struct spawn_plan *plan, struct spawned *spawned, struct failure *failure);
void close_far_ends(const struct spawned *spawned);

#endif
