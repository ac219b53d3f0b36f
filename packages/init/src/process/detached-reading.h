#ifndef SVC_DETACHED_READING_H
#define SVC_DETACHED_READING_H

#include "process/detached-record.h"

// One client that reads the output of a detached process. It gets every byte from its offset on, and is told which
// were dropped. While it is attached the process waits for it, but not longer than DETACHED_READER_TIMEOUT_MS without progress.

/** Offsets per stream; UINT64_MAX: not wanted. False when the connection has too much open, or memory ran out. */
bool reading_start(struct detached *, struct conn *, uint32_t id, const uint64_t offsets[2], bool is_following);
/** There is more to read, or the process has ended. */
void readings_wake(struct detached *);
/** The first offset that a reader still waits for; the end of the ring when none does. */
uint64_t readings_need(const struct detached *, int stream);
/** Readers that have taken nothing for too long are ignored from now on. */
void readings_leave_behind(struct detached *);
/** The process is being forgotten: every reader is notified. */
void readings_end(struct detached *);

#endif
