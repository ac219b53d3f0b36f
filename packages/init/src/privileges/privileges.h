#ifndef SVC_PRIVILEGES_H
#define SVC_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

enum profile { PROFILE_DEFAULT, PROFILE_RESTRICTED, PROFILE_NONE };

/** Non-dumpable, no_new_privs, and the seccomp filter of the profile, for PID 1 and everything after it. */
bool privileges_init(enum profile);

// In a child that becomes a user, before and after setresuid.
void privileges_before_user(void);
bool privileges_of_user(uid_t uid);

/** Keeps exactly the capabilities in `mask`; also from what could be gained later. Needs them now. */
bool capabilities_keep(unsigned long long mask);

/** Loads the precompiled filter. PROFILE_NONE loads none. */
bool filter_load(enum profile);

#endif
