#include "process/seat.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop/loop.h"

enum { SEATS = 16, STACK_BYTES = 32 * 1024 };

struct seat {
  bool is_taken;
  struct plan plan;
  struct arena arena;
  struct watch error; // while no other watch reads it
};

static struct seat *seats; // NULL: new processes get a copy of our memory
static char stacks[SEATS][STACK_BYTES] __attribute__((aligned(16)));

static void unpoison(void *stack);
static int sit(void *seat);
static bool copy_strings(struct plan *, struct arena *);
static void on_error(struct watch *, uint32_t events);

bool seat_init(void) {
  const char *how = getenv("SVC_SPAWN");
  if (!how || !strcmp(how, "fork")) return true;
  if (strcmp(how, "shared") != 0) return false;
  seats = calloc(SEATS, sizeof *seats); // without memory fork is used
  return true;
}

struct seat *seat_take(void) {
  for (int i = 0; seats && i < SEATS; i++) {
    if (seats[i].is_taken) continue;
    seats[i].is_taken = true;
    return &seats[i];
  }
  return NULL;
}

pid_t seat_start(struct seat *seat, const struct plan *plan, struct arena *arena) {
  seat->plan = *plan;
  pid_t pid = -1;
  char *stack = stacks[seat - seats];
  unpoison(stack);
  if (!copy_strings(&seat->plan, arena)) errno = ENOMEM;
  else pid = clone(sit, stack + STACK_BYTES, CLONE_VM | SIGCHLD, seat);
  if (pid < 0) return seat->is_taken = false, -1;
  seat->arena = *arena;
  *arena = (struct arena){0};
  return pid;
}

/** The sanitizers poison the edges of variables on a stack; the last user of this stack never returned, so its marks must be cleared. */
static void unpoison(void *stack) {
#ifdef __SANITIZE_ADDRESS__
  void __asan_unpoison_memory_region(void const volatile *, size_t);
  __asan_unpoison_memory_region(stack, STACK_BYTES);
#else
  (void)stack;
#endif
}

static int sit(void *seat) { child_run(&((struct seat *)seat)->plan); }

/** Copies the strings of the configuration, which svc.configure may replace while the process reads them. */
static bool copy_strings(struct plan *plan, struct arena *arena) {
  for (char **at = plan->environment; *at; at++) {
    if (!(*at = arena_copy(arena, *at, strlen(*at)))) return false;
  }
  plan->cwd = arena_copy(arena, plan->cwd, strlen(plan->cwd));
  return plan->cwd != NULL;
}

static void give_back(struct seat *seat) {
  arena_free(&seat->arena);
  seat->is_taken = false;
}

void seat_leave(struct seat *seat, int error) {
  char rest;
  bool is_over = seat && read(error, &rest, 1) == 0;
  if (is_over) give_back(seat);
  // A seat that cannot be watched is leaked, because it must never have two users.
  if (seat && !is_over && watch_add(&seat->error, error, EPOLLIN, on_error)) return;
  if (error >= 0) close(error);
}

static void on_error(struct watch *watch, uint32_t events) {
  char rest[64];
  (void)events;
  ssize_t got = read(watch->fd, rest, sizeof rest);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  watch_close(watch);
  give_back(containing(watch, struct seat, error));
}
