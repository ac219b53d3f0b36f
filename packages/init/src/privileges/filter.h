#ifndef SVC_FILTER_H
#define SVC_FILTER_H

#include <stdbool.h>

enum profile { PROFILE_DEFAULT, PROFILE_RESTRICTED, PROFILE_NONE };

/** Loads the precompiled filter. PROFILE_NONE loads none. */
bool filter_load(enum profile);

#endif
