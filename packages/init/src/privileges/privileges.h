#ifndef SVC_PRIVILEGES_H
#define SVC_PRIVILEGES_H

#include <sys/types.h>

#include "privileges/filter.h"

/** Non-dumpable, no_new_privs, and the seccomp filter of the profile, for PID 1 and everything after it. */
bool privileges_init(enum profile);

// In a child that becomes a user, before and after setresuid.
void privileges_before_user(void);
bool privileges_of_user(uid_t uid);

/** Keeps exactly the capabilities in `mask`; also from what could be gained later. Needs them now. */
bool capabilities_keep(unsigned long long mask);

#endif
