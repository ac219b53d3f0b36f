#include "process/spawn-stack.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop/loop.h"

enum { STACKS = 16, STACK_BYTES = 32 * 1024 };

struct spawn_stack {
  bool is_taken;
  struct plan plan;
  struct arena arena;
  struct watch error; // while no other watch reads it
};

static struct spawn_stack *spawn_stacks; // NULL: new processes get a copy of our memory
static char stacks[STACKS][STACK_BYTES] __attribute__((aligned(16)));

static void unpoison(void *stack);
static int run_plan(void *argument);
static bool copy_strings(struct plan *, struct arena *);
static void on_error(struct watch *, uint32_t events);

bool spawn_stack_init(void) {
  const char *how = getenv("SVC_SPAWN");
  if (!how || !strcmp(how, "fork")) return true;
  if (strcmp(how, "shared") != 0) return false;
  spawn_stacks = calloc(STACKS, sizeof *spawn_stacks); // without memory fork is used
  return true;
}

struct spawn_stack *spawn_stack_take(void) {
  for (int i = 0; spawn_stacks && i < STACKS; i++) {
    if (spawn_stacks[i].is_taken) continue;
    spawn_stacks[i].is_taken = true;
    return &spawn_stacks[i];
  }
  return NULL;
}

pid_t spawn_stack_start(struct spawn_stack *stack, const struct plan *plan, struct arena *arena) {
  stack->plan = *plan;
  pid_t pid = -1;
  char *memory = stacks[stack - spawn_stacks];
  unpoison(memory);
  if (!copy_strings(&stack->plan, arena)) errno = ENOMEM;
  else pid = clone(run_plan, memory + STACK_BYTES, CLONE_VM | SIGCHLD, stack);
  if (pid < 0) return stack->is_taken = false, -1;
  stack->arena = *arena;
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

static int run_plan(void *argument) { child_run(&((struct spawn_stack *)argument)->plan); }

/** Copies the strings of the configuration, which svc.configure may replace while the process reads them. */
static bool copy_strings(struct plan *plan, struct arena *arena) {
  for (char **at = plan->environment; *at; at++) {
    if (!(*at = arena_copy(arena, *at, strlen(*at)))) return false;
  }
  plan->cwd = arena_copy(arena, plan->cwd, strlen(plan->cwd));
  return plan->cwd != NULL;
}

static void give_back(struct spawn_stack *stack) {
  arena_free(&stack->arena);
  stack->is_taken = false;
}

void spawn_stack_release(struct spawn_stack *stack, int error) {
  char rest;
  bool is_over = stack && read(error, &rest, 1) == 0;
  if (is_over) give_back(stack);
  // A stack that cannot be watched is leaked, because it must never have two users.
  if (stack && !is_over && watch_add(&stack->error, error, EPOLLIN, on_error)) return;
  if (error >= 0) close(error);
}

static void on_error(struct watch *watch, uint32_t events) {
  char rest[64];
  (void)events;
  ssize_t got = read(watch->fd, rest, sizeof rest);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  watch_close(watch);
  give_back(containing(watch, struct spawn_stack, error));
}
