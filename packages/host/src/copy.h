#ifndef SVC_COPY_H
#define SVC_COPY_H

#include "failure.h"

/** Asked before every piece of a copy. */
struct copy_watch {
  /** Fails when the copy is to be given up. */
  int (*may_go_on)(const struct copy_watch *, struct failure *failure);
};

/** Copies a file to a new one (EEXIST when there is one), holes kept. A copy that fails is deleted. `watch` may be NULL. */
int copy_sparse(const char *from, const char *to, const struct copy_watch *watch, struct failure *failure);

#endif
