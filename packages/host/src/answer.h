#ifndef SVC_ANSWER_H
#define SVC_ANSWER_H

#include <stdbool.h>

#include "failure.h"

/** The result of a call after "ok"; empty for most. */
struct answer {
  const char *text;
  // A thread answers this request when it is done.
  bool is_deferred;
};

/** Writes one answer line with one write, so that threads may answer at any time. */
int write_answer(const char *id, const struct answer *answer, const struct failure *failure);

#endif
