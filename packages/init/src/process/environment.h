#ifndef SVC_ENVIRONMENT_H
#define SVC_ENVIRONMENT_H

#include "process/launch.h"

/** The environment of one process: defaults, then the call's own, then PATH, HOME, SHELL and TERM. NULL: no memory. */
char **environment_of(struct launch *, const struct identity *);
const char *environment_get(char **environment, const char *name); // the value, or NULL

#endif
