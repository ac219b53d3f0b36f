#ifndef SVC_LAUNCH_H
#define SVC_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "failure.h"

struct launch_plan {
  // The request to answer.
  const char *id;
  // The name for `end_launch`.
  const char *name;
  bool has_closed_streams;
  const char *cover;
  // A folder that is claimed until the program runs; NULL for none.
  const char *claim;
  size_t environment_count;
  const char *const *environment;
  size_t command_count;
  const char *const *command;
};

/**
 * Runs a program in a thread that answers the request when the program has ended: with its exit code, or 128 and the number of
 * the signal that ended it. The strings of the plan are copied.
 */
int start_launch(const struct launch_plan *plan, struct failure *failure);

/**
 * Kills the program and its process group; one that was not yet executed never is (`ECANCELED`). The answer to the launch still
 * follows. Does nothing when it has ended.
 */
void end_launch(const char *name);

/**
 * Whether a launch, of this helper or another, is about to execute a program for the folder. Once the client of a helper has died
 * and the folder is unclaimed, that helper executes no program for it any more: every executed one is visible.
 */
int find_claim(const char *folder, bool *is_claimed, struct failure *failure);

#endif
