#ifndef SVC_COPY_H
#define SVC_COPY_H

#include "failure.h"

/** Copies a file to a new one (EEXIST when there is one), holes kept. A copy that fails is deleted. */
int copy_sparse(const char *from, const char *to, struct failure *failure);

#endif
