#ifndef SVC_SEALED_PROGRAM_H
#define SVC_SEALED_PROGRAM_H

#include "failure.h"

/** Long enough for any path that `find_sealed_program` answers with. */
enum { SEALED_PATH_BYTES = 64 };

/**
 * Where a copy of the program is that nobody can change (a sealed file of memory). crun, which makes such a copy of itself with every
 * start so that what it starts cannot overwrite it (CVE-2019-5736), sees that it runs from one already. A copy is kept for as long as
 * the program stays the same file. Fails where the kernel has no such files, or executes none.
 */
int find_sealed_program(const char *program, char path[SEALED_PATH_BYTES], struct failure *failure);

#endif
