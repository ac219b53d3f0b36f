/**
 * `pauses-probe MILLISECONDS`: works for so long in one piece, like a kernel call that restarts when it is interrupted, while
 * pauses interrupt it. Linked with `--wrap=nanosleep`, to count them. Prints how many there were; gives up after 20 seconds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../src/pauses.h"

static volatile unsigned pauses;

int __real_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left) {
  pauses++;
  return __real_nanosleep(wanted, left);
}

static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool work(double length) {
  unsigned before = pauses;
  double end = seconds(CLOCK_THREAD_CPUTIME_ID) + length;
  while (seconds(CLOCK_THREAD_CPUTIME_ID) < end && pauses == before) continue;
  return pauses == before;
}

int main(int count, char **words) {
  double length = count > 1 ? atof(words[1]) / 1000 : 0;
  double limit = seconds(CLOCK_MONOTONIC) + 20;
  if (!start_pauses()) return 2;
  while (!work(length))
    if (seconds(CLOCK_MONOTONIC) > limit) return 1;
  stop_pauses();
  unsigned until_done = pauses;
  // The pauses are over.
  if (!work(0.005)) return 3;
  printf("%u\n", until_done);
}
