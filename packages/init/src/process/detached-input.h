#ifndef SVC_DETACHED_INPUT_H
#define SVC_DETACHED_INPUT_H

#include "wire/conn.h"

struct detached;

// Input of a detached process. A write may have a name, so that a client that does not know whether it
// arrived may send it again: bytes that were accepted before are dropped, and the rest continues where it stopped.

struct detached_input {
  const char *write; // NULL: without a name
  uint64_t offset;   // of `data` in the write
  struct span data;  // empty: the end of the input
};

void detached_write(struct detached *, struct conn *, uint32_t id, const struct detached_input *);
/** Reports how much of the write was accepted. */
void detached_recall_write(const struct detached *, struct conn *, uint32_t id, const char *write);

#endif
