#ifndef SVC_ANSWER_H
#define SVC_ANSWER_H

#include "failure.h"

/* What a call answers besides "ok"; empty for most. */
struct answer {
  const char *text;
};

/* Writes one answer line with one write, so that threads may answer at any time. */
int write_answer(const char *id, const struct answer *answer, const struct failure *failure);

#endif
