#ifndef SVC_DETACHED_RECORD_H
#define SVC_DETACHED_RECORD_H

#include "bounds.h"
#include "process/process.h"
#include "process/ring.h"
#include "wire/session.h"

/** A detached process; shared by the detached-*.c files. */
struct detached {
  struct process process;
  struct list all;
  struct ring rings[2];
  struct list readings; // detached-reading.h
  // Requests without an answer yet; `conn` is NULL when there is none.
  struct session starting, writing, forgetting;
  uint32_t write_tag;      // of the latest write to stdin
  struct written *written; // detached-input.c: the latest writes that have a name; NULL when there was none
  unsigned next_written;
  struct timer unread_timer;
  char key[KEY_MAX + 1];
  char by[KEY_MAX + 1]; // sender of the latest signal, and the signal
  int by_signal;
  uint64_t output_max; // bytes of both streams; 0: no limit
  bool was_over_limit, was_disk_full, was_shut_down, is_held, is_leaving;
  bool is_spare; // unused: it is no activity, and ends when svc.configure changes the defaults
};

extern struct list detacheds;
extern unsigned detached_count;
extern size_t detached_stdin_waiting;              // bytes, all detached processes together
extern const struct session_kind detached_request; // pending start, stdin and forget

/** A reader has taken output or has left: the process continues when it waited for that. */
void detached_taken(struct detached *);
void detached_write_state(struct writer *, const struct detached *);
/** Answers all requests that wait for the start. */
void detached_tell_start(struct detached *);
/** Answers a pending request; does nothing when its connection is gone. */
void detached_answer(struct session *, const char *type, struct writer *payload);
void detached_refuse(struct session *, const char *kind, const char *message);
/** True when every reader of a process that has ended has its last bytes. */
bool detached_is_told(void);

#endif
