#ifndef SVC_USERS_H
#define SVC_USERS_H

#include "process/launch.h"

/**
 * Resolves "name", "uid", "name:group" or "uid:gid" with the sandbox's own /etc/passwd and /etc/group.
 * A number needs no entry (home is then "/"). False: `message` says which part is unknown.
 */
bool identity_of(const char *spec, struct identity *, char *message, size_t message_size);

#endif
