#ifndef SVC_COPY_H
#define SVC_COPY_H

#include "failure.h"

/** Called before every piece of a copy. */
struct copy_watch {
  /** Fails to cancel the copy. */
  int (*may_go_on)(const struct copy_watch *, struct failure *failure);
};

/** Copies a file to a new one (EEXIST when it exists), holes kept. A failed copy is deleted. `watch` may be NULL. */
int copy_sparse(const char *from, const char *to, const struct copy_watch *watch, struct failure *failure);

#endif
