#ifndef SVC_SPAWN_H
#define SVC_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "failure.h"

/** The mask that this program was started with; programs that it spawns get it back. */
extern mode_t inherited_umask;

struct spawn_plan {
  // The program and its arguments; a program without a slash is looked for on the PATH of `environment`.
  char **command;
  char **environment;
  // Standard streams that end when the program has; the null device otherwise.
  bool has_closed_streams;
  // Executed from a copy that nobody can change, where there can be one.
  bool is_sealed;
  // A folder that the program finds empty, in a mount namespace of its own; NULL for none.
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
 * Runs a program in a session of its own, in the folder /, with no signal blocked or ignored and nothing open but its standard
 * streams. Must be called in a thread that does nothing else: it gets a folder and a umask of its own.
 * The caller waits for the process, then calls `close_far_ends`.
 */
int spawn_program(const struct spawn_plan *plan, struct spawned *spawned, struct failure *failure);
void close_far_ends(const struct spawned *spawned);

#endif
