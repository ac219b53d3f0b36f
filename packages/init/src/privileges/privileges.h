#ifndef SVC_PRIVILEGES_H
#define SVC_PRIVILEGES_H

#include <sys/types.h>

#include "privileges/filter.h"

/** Non-dumpable, no_new_privs, and the seccomp filter of the profile, for PID 1 and everything after it. */
bool privileges_init(enum profile);

// In a child that becomes a user, before and after setresuid; the second gives 0 or an error number, negated.
// SAFETY: they leave errno alone, so a child that shares its memory with PID 1 may call them.
void privileges_before_user(void);
long privileges_of_user(uid_t uid);

/** Keeps exactly the capabilities in `mask`; also from what could be gained later. Needs them now. */
bool capabilities_keep(unsigned long long mask);

#endif
