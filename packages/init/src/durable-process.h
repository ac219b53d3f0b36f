#ifndef SVC_DURABLE_PROCESS_H
#define SVC_DURABLE_PROCESS_H

#include "limits.h"
#include "process.h"
#include "ring.h"

// A process the engine started by key. Its output waits in rings until the engine has it.
struct durable {
  struct process process;
  struct list all;
  struct task pump;
  struct ring rings[2];
  char key[KEY_MAX + 1];
  uint32_t start_id, end_id; // requests not yet answered on this control connection; 0 when none
  bool is_attached, has_told_exit;
};

extern struct list durables;
extern size_t durable_stdin_waiting; // bytes, all durable processes together
extern const struct process_owner durable_owner;

/** Sends one piece of what waits; queues itself while there is more. */
void durable_pump(struct task *);
void durable_destroy(struct durable *);

#endif
