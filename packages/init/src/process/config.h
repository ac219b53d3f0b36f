#ifndef SVC_CONFIG_H
#define SVC_CONFIG_H

#include "process/launch.h"

// Defaults for every process, as the latest svc.configure set them.
struct config {
  struct arena arena;
  struct strings env;
  char *user, *workdir, *shell, *path_prefix;
  struct limits rlimits;
  struct strings unkept; // limits that this kernel accepts but does not enforce: never set
  bool is_set;
};

extern struct config config;

/** Replaces all defaults and writes the given files. False: `message` has the reason; nothing is replaced. */
bool config_replace(struct reader *payload, char *message, size_t message_size);

/**
 * Makes the working directory, root's and 0755, when it is missing, and looks the user up. False: `message` has the reason
 * why no process could be started.
 */
bool config_prepare(char *message, size_t message_size);

#endif
