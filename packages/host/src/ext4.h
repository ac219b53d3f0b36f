#ifndef SVC_EXT4_H
#define SVC_EXT4_H

#include "failure.h"

/**
 * Fails with EUCLEAN when the ext4 image `file` has to be checked before it is mounted: the kernel recorded errors in it, or it
 * has no journal and was not unmounted cleanly.
 */
int check_clean(int file, struct failure *failure);

#endif
