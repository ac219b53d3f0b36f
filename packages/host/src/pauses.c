#include "pauses.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/** Intervals: short at first, when the lock is usually released soon, then doubled each time, up to 51 ms of work. */
enum { WORK_NS = 100 * 1000, PAUSES_PER_WORK = 3, EVEN = 16, DOUBLINGS = 9 };

static _Thread_local timer_t timer;
static _Thread_local unsigned interruptions;
static _Thread_local volatile sig_atomic_t is_on;

static long work_ns(void) {
  if (interruptions <= EVEN) return WORK_NS;
  unsigned doublings = interruptions - EVEN;
  return (long)WORK_NS << (doublings < DOUBLINGS ? doublings : DOUBLINGS);
}

static struct timespec duration(long nanoseconds) {
  return (struct timespec){.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
}

/** Once: a second interruption right after a late pause would leave no time to work. */
static void interrupt_after(long nanoseconds) {
  timer_settime(timer, 0, &(struct itimerspec){.it_value = duration(nanoseconds)}, NULL);
}

/** The interrupted call restarts when this returns. */
static void pause_briefly(int number) {
  (void)number;
  // The last signal may arrive late.
  if (!is_on) return;
  int error = errno;
  struct timespec pause = duration(PAUSES_PER_WORK * work_ns());
  nanosleep(&pause, NULL);
  interruptions++;
  interrupt_after(work_ns());
  errno = error;
}

bool start_pauses(void) {
  struct sigaction action = {.sa_handler = pause_briefly, .sa_flags = SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
  event.sigev_notify_thread_id = gettid();
  if (sigaction(SIGALRM, &action, NULL) < 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) < 0) return false;
  interruptions = 0;
  is_on = true;
  interrupt_after(WORK_NS);
  return true;
}

void stop_pauses(void) {
  is_on = false;
  timer_delete(timer);
}
