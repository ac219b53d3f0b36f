#include "loop/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64 };

static int epoll_fd = -1;
static struct epoll_event batch[BATCH];
static int batch_at, batch_count;
static struct list timers = {&timers, &timers}; // soonest first
static struct list tasks = {&tasks, &tasks};

static int wait_ms(void);
static void run_timers(void);
static void run_tasks(void);

void loop_init(void) {
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) abort();
}

void loop_turn(void (*before_wait)(void)) {
  run_timers();
  run_tasks();
  before_wait();
  batch_count = epoll_wait(epoll_fd, batch, BATCH, wait_ms());
  for (batch_at = 0; batch_at < batch_count; batch_at++) {
    struct watch *watch = batch[batch_at].data.ptr;
    if (watch) watch->ready(watch, batch[batch_at].events);
  }
  batch_count = 0;
}

bool watch_add(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t)) {
  struct epoll_event event = {.events = events ? events : (uint32_t)EPOLLET, .data.ptr = watch};
  watch->fd = -1;
  watch->wanted = events;
  watch->ready = ready;
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) return false;
  watch->fd = fd;
  return true;
}

void watch_want(struct watch *watch, uint32_t events) {
  // Paused means edge-triggered without interest, not removed: a hang-up is then reported once, and resuming is a MOD, which needs
  // no memory and so cannot fail. Pausing a paused watch would report the hang-up again and spin the loop.
  if (watch->wanted == events) return;
  watch->wanted = events;
  struct epoll_event event = {.events = events ? events : (uint32_t)EPOLLET, .data.ptr = watch};
  if (watch->fd >= 0) epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void watch_close(struct watch *watch) {
  int fd = watch_release(watch);
  if (fd >= 0) close(fd);
}

int watch_release(struct watch *watch) {
  int fd = watch->fd;
  if (fd < 0) return -1;
  epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
  // Its memory may be freed next: pending events of this batch for it must not be delivered.
  for (int i = batch_at + 1; i < batch_count; i++) {
    if (batch[i].data.ptr == watch) batch[i].data.ptr = NULL;
  }
  watch->fd = -1;
  return fd;
}

void timer_init(struct timer *timer, void (*fire)(struct timer *)) {
  list_init(&timer->node);
  timer->fire = fire;
}

void timer_start(struct timer *timer, uint64_t delay_ms) {
  uint64_t now = now_ms();
  list_remove(&timer->node);
  timer->at_ms = delay_ms > UINT64_MAX - now ? UINT64_MAX : now + delay_ms;
  struct list *before = timers.prev;
  while (before != &timers && containing(before, struct timer, node)->at_ms > timer->at_ms) before = before->prev;
  list_append(before->next, &timer->node);
}

void timer_stop(struct timer *timer) { list_remove(&timer->node); }
bool timer_is_running(const struct timer *timer) { return !list_is_empty(&timer->node); }

void task_init(struct task *task, void (*run)(struct task *)) {
  list_init(&task->node);
  task->run = run;
}

void task_queue(struct task *task) {
  if (list_is_empty(&task->node)) list_append(&tasks, &task->node);
}

void task_cancel(struct task *task) { list_remove(&task->node); }

uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t unix_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int wait_ms(void) {
  if (!list_is_empty(&tasks)) return 0;
  if (list_is_empty(&timers)) return -1;
  uint64_t at = containing(timers.next, struct timer, node)->at_ms, now = now_ms();
  if (at <= now) return 0;
  return at - now > 60000 ? 60000 : (int)(at - now);
}

static void run_timers(void) {
  uint64_t now = now_ms();
  while (!list_is_empty(&timers)) {
    struct timer *timer = containing(timers.next, struct timer, node);
    if (timer->at_ms > now) return;
    list_remove(&timer->node);
    timer->fire(timer);
  }
}

static void run_tasks(void) {
  // Only tasks queued before this turn: a task that queues itself again runs after the descriptors.
  struct list turn;
  list_init(&turn);
  while (!list_is_empty(&tasks)) {
    struct list *node = tasks.next;
    list_remove(node);
    list_append(&turn, node);
  }
  while (!list_is_empty(&turn)) {
    struct task *task = containing(turn.next, struct task, node);
    list_remove(&task->node);
    task->run(task);
  }
}
