#ifndef SVC_CALLS_H
#define SVC_CALLS_H

#include "answer.h"
#include "failure.h"
#include "request.h"

/** Runs the call named in the request. */
int run_call(const struct request *request, struct answer *answer, struct failure *failure);

#endif
