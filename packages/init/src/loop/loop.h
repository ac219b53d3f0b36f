#ifndef SVC_LOOP_H
#define SVC_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/list.h"

// One epoll loop, one thread. Callbacks never block; long work is a task that does one slice per turn.

struct watch {
  int fd; // -1: not watching
  uint32_t wanted;
  void (*ready)(struct watch *, uint32_t events);
};

/** Starts watching. False when the kernel has no memory for it; the descriptor stays the caller's. */
bool watch_add(struct watch *, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t));
/** Changes the interest; 0 pauses. Cannot fail. A paused watch may still get a spurious call: handlers check. */
void watch_want(struct watch *, uint32_t events);
/** Stops watching and closes the descriptor. Safe inside a callback, and twice. */
void watch_close(struct watch *);
/** Stops watching and returns the descriptor to the caller. */
int watch_release(struct watch *);

struct timer {
  struct list node;
  uint64_t at_ms;
  void (*fire)(struct timer *);
};

void timer_init(struct timer *, void (*fire)(struct timer *));
void timer_start(struct timer *, uint64_t delay_ms);
void timer_stop(struct timer *);
bool timer_is_running(const struct timer *);

struct task {
  struct list node;
  void (*run)(struct task *);
};

void task_init(struct task *, void (*run)(struct task *));
/** Runs once in the next turn; queueing again inside `run` gives the next slice. */
void task_queue(struct task *);
void task_cancel(struct task *);

void loop_init(void);
/** One turn: timers, tasks, `before_wait`, then all ready descriptors. */
void loop_turn(void (*before_wait)(void));

uint64_t now_ms(void);
uint64_t unix_ns(void);

#endif
