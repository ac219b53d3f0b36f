#ifndef SVC_DETACHED_RECORD_H
#define SVC_DETACHED_RECORD_H

#include "bounds.h"
#include "process/process.h"
#include "process/ring.h"
#include "wire/session.h"

/** A detached process as every file about them knows it. */
struct detached {
  struct process process;
  struct list all;
  struct ring rings[2];
  struct list readings; // detached-reading.h
  // Requests that are not answered yet; `conn` is NULL when there is none.
  struct session starting, writing, forgetting;
  uint32_t write_tag;      // of the latest write to stdin
  struct written *written; // detached-input.c: the latest writes that have a name; NULL when there was none
  unsigned next_written;
  struct timer patience;
  char key[KEY_MAX + 1];
  char by[KEY_MAX + 1]; // who sent the latest signal, and which
  int by_signal;
  uint64_t output_max; // bytes of both streams; 0: no limit
  bool was_over_limit, was_disk_full, was_shut_down, is_held, is_leaving;
  bool is_spare; // nobody has used it yet: it is no activity, and ends when what processes start from changes
};

extern struct list detacheds;
extern unsigned detached_count;
extern size_t detached_stdin_waiting;              // bytes, all detached processes together
extern const struct session_kind detached_request; // start, stdin and forget while they wait

/** Output was taken by a reader, or a reader has left: goes on when that is what it waited for. */
void detached_taken(struct detached *);
void detached_write_state(struct writer *, const struct detached *);
/** Answers whoever waits for the start. */
void detached_tell_start(struct detached *);
/** Answers one of the requests that wait, if somebody still does. */
void detached_answer(struct session *, const char *type, struct writer *payload);
void detached_refuse(struct session *, const char *kind, const char *message);
/** True when every reader of a process that ended has its last bytes. */
bool detached_is_told(void);

#endif
