#ifndef SVC_FAILURE_H
#define SVC_FAILURE_H

#include "wire/conn.h"

// Why a process did not start, with the fields of core.exec.failed. No pointers: it is sent through a pipe.
struct failure {
  char kind[24], stage[24];
  int error; // errno, 0 when none
  char message[256];
};

/**
 * Sets every field; `kind` NULL derives it from the error number by the contract's table.
 * SAFETY: writes to nothing else, so a process that shares its memory with another may call it.
 */
void failure_set(struct failure *, const char *kind, const char *stage, int error, const char *message);
/** Answers the request with it: `type` is the last message of its id. */
void failure_send(struct conn *, uint32_t id, const char *type, const struct failure *);
const char *errno_name(int error); // "ENOENT"; NULL when unknown

#endif
