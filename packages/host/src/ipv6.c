#include "ipv6.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { SPIN_NS = 100 * 1000, PAUSE_NS = 300 * 1000 };

/** The write begins again when this returns. */
static void pause_briefly(int number) {
  (void)number;
  int error = errno;
  nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  errno = error;
}

/** Interrupts this thread again and again, until `stop_pauses`. False: it cannot, and then it does without. */
static bool start_pauses(timer_t *timer) {
  struct sigaction action = {.sa_handler = pause_briefly, .sa_flags = SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
  event.sigev_notify_thread_id = gettid();
  if (sigaction(SIGALRM, &action, NULL) < 0 || timer_create(CLOCK_MONOTONIC, &event, timer) < 0) return false;
  struct itimerspec times = {.it_value = {.tv_nsec = SPIN_NS}, .it_interval = {.tv_nsec = SPIN_NS + PAUSE_NS}};
  timer_settime(*timer, 0, &times, NULL);
  return true;
}

static int set(const char *interface, const char *name, const char *value, struct failure *failure) {
  char path[96];
  snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/%s", interface, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail(failure, "open %s of IPv6", name);
  int outcome = write(fd, value, 1) == 1 ? 0 : fail(failure, "set %s of IPv6", name);
  close(fd);
  return outcome;
}

static int set_disabled(const char *interface, const char *value, struct failure *failure) {
  struct failure attempt = {0};
  if (set(interface, "disable_ipv6", value, &attempt) == 0 || attempt.error == ENOENT) return 0;
  return fail_with(failure, attempt.error, "turn off IPv6");
}

int disable_ipv6(const char *interface, struct failure *failure) {
  // The kernel does not wait for its lock here but tries again at once, inside the call, for as long as somebody else has it: a
  // processor full of nothing, which that somebody may need to come to an end.
  timer_t timer;
  bool has_pauses = start_pauses(&timer);
  int outcome = set_disabled(interface, "1", failure);
  if (has_pauses) timer_delete(timer);
  return outcome;
}

int enable_ipv6(const char *interface, struct failure *failure) {
  timer_t timer;
  bool has_pauses = start_pauses(&timer);
  int outcome = set(interface, "addr_gen_mode", "1", failure);
  if (outcome == 0) outcome = set(interface, "accept_ra", "0", failure);
  if (outcome == 0) outcome = set(interface, "disable_ipv6", "0", failure);
  if (has_pauses) timer_delete(timer);
  return outcome;
}

int set_ipv6_of_new_interfaces(bool is_on, struct failure *failure) { return set_disabled("default", is_on ? "0" : "1", failure); }
