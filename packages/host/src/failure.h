#ifndef SVC_FAILURE_H
#define SVC_FAILURE_H

/**
 * Why a call failed: the errno of the first failed step and a few words that name it.
 * Every step returns 0 or -1; `fail` records the first failure only, so clean-up cannot hide it.
 */
struct failure {
  int error;
  char step[160];
};

/** Records errno with the step's name and returns -1. */
int fail(struct failure *failure, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Same with an error of our own choosing. */
int fail_with(struct failure *failure, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
