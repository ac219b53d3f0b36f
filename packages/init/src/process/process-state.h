#ifndef SVC_PROCESS_STATE_H
#define SVC_PROCESS_STATE_H

#include "process/process.h"
#include "process/ring.h"
#include "wire/cbor-write.h"

/** Writes a ProcessState as in PROTOCOL.md, with room for `extra` more pairs of the caller. */
void process_state_write(struct writer *, const char *key, const struct process *, const char *reason, const struct ring rings[2],
                         size_t extra);

#endif
