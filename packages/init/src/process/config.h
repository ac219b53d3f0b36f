#ifndef SVC_CONFIG_H
#define SVC_CONFIG_H

#include "process/launch.h"

// Defaults for every process, as svc.configure set them last.
struct config {
  struct arena arena;
  struct strings env;
  char *user, *workdir, *shell, *path_prefix;
  struct limits rlimits;
  struct strings unkept; // limits that this kernel takes and does not keep: nobody gets them
  bool is_set;
};

extern struct config config;

/** Replaces all defaults and writes the given files. False: `message` says what was wrong; nothing is replaced. */
bool config_replace(struct reader *payload, char *message, size_t message_size);

/**
 * Makes the working directory, root's and 0755, when it is missing, and finds out who the user is. False: `message` says what no
 * process could be started with.
 */
bool config_prepare(char *message, size_t message_size);

#endif
