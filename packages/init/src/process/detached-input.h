#ifndef SVC_DETACHED_INPUT_H
#define SVC_DETACHED_INPUT_H

#include "wire/conn.h"

struct detached;

// Input of a detached process. A write that has a name is known by it, so that a client who does not know whether it
// arrived may send it again: what was accepted before is dropped, and the rest goes on where it stopped.

struct detached_input {
  const char *write; // NULL: without a name
  uint64_t offset;   // of `data` in the write
  struct span data;  // empty: the end of the input
};

void detached_write(struct detached *, struct conn *, uint32_t id, const struct detached_input *);
/** Tells how much of the write was accepted. */
void detached_recall_write(const struct detached *, struct conn *, uint32_t id, const char *write);

#endif
