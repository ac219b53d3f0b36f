#ifndef SVC_PRIVILEGES_H
#define SVC_PRIVILEGES_H

#include <sys/types.h>

#include "privileges/filter.h"

/** Non-dumpable, no_new_privs, and the seccomp filter of the profile, for PID 1 and all its children. */
bool privileges_init(enum profile);

// In a child that changes its user, before and after setresuid; the second returns 0 or a negated error number.
// SAFETY: they leave errno alone, so a child that shares its memory with PID 1 may call them.
void privileges_before_user(void);
long privileges_of_user(uid_t uid);

/** Keeps exactly the capabilities in `mask`, also in the bounding set. They must be permitted now. */
bool capabilities_keep(unsigned long long mask);

#endif
