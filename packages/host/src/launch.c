#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "detached-thread.h"
#include "spawn.h"

struct launch {
  struct launch *next;
  // 0 while there is nothing to kill.
  pid_t pid;
  bool is_given_up;
  struct spawn_plan plan;
  const char *id;
  const char *name;
  const char *claim;
  // Environment, NULL, command, NULL; the strings themselves follow.
  char *strings[];
};

/** Guards the list, and `pid` and `is_given_up` of what is in it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct launch *launches = NULL;

static char *keep(char **space, const char *text) {
  char *kept = *space;
  *space = stpcpy(kept, text) + 1;
  return kept;
}

/** One block, so that one free ends it. */
static struct launch *copy_plan(const struct launch_plan *plan) {
  size_t pointers = plan->environment_count + plan->command_count + 2;
  size_t bytes = strlen(plan->id) + strlen(plan->name) + 2;
  if (plan->cover != NULL) bytes += strlen(plan->cover) + 1;
  if (plan->claim != NULL) bytes += strlen(plan->claim) + 1;
  for (size_t index = 0; index < plan->environment_count; index++) bytes += strlen(plan->environment[index]) + 1;
  for (size_t index = 0; index < plan->command_count; index++) bytes += strlen(plan->command[index]) + 1;
  struct launch *launch = calloc(1, sizeof *launch + pointers * sizeof(char *) + bytes);
  if (launch == NULL) return NULL;
  char **environment = launch->strings;
  char **command = environment + plan->environment_count + 1;
  char *space = (char *)(launch->strings + pointers);
  for (size_t index = 0; index < plan->environment_count; index++) {
    environment[index] = keep(&space, plan->environment[index]);
  }
  for (size_t index = 0; index < plan->command_count; index++) command[index] = keep(&space, plan->command[index]);
  launch->id = keep(&space, plan->id);
  launch->name = keep(&space, plan->name);
  const char *cover = plan->cover == NULL ? NULL : keep(&space, plan->cover);
  launch->claim = plan->claim == NULL ? NULL : keep(&space, plan->claim);
  launch->plan = (struct spawn_plan){command, environment, plan->has_closed_streams, cover, -1};
  return launch;
}

static void add(struct launch *launch) {
  pthread_mutex_lock(&lock);
  launch->next = launches;
  launches = launch;
  pthread_mutex_unlock(&lock);
}

static void take_away(struct launch *launch) {
  pthread_mutex_lock(&lock);
  struct launch **place = &launches;
  while (*place != launch) place = &(*place)->next;
  *place = launch->next;
  pthread_mutex_unlock(&lock);
}

/** SAFETY: what is launched for an engine that has died could begin after the next engine has cleaned up. */
static bool is_wanted(struct launch *launch) {
  struct pollfd answers = {.fd = STDOUT_FILENO};
  pthread_mutex_lock(&lock);
  bool is_heard = poll(&answers, 1, 0) >= 0 && (answers.revents & (POLLERR | POLLHUP)) == 0;
  bool wanted = is_heard && !launch->is_given_up;
  pthread_mutex_unlock(&lock);
  return wanted;
}

static int wait_for(struct launch *launch, pid_t pid, struct failure *failure) {
  siginfo_t unused;
  int status = 0;
  pthread_mutex_lock(&lock);
  launch->pid = pid;
  pthread_mutex_unlock(&lock);
  // It was cancelled while it was being executed, before its id was known.
  if (!is_wanted(launch)) kill(-pid, SIGKILL);
  while (waitid(P_PID, (id_t)pid, &unused, WEXITED | WNOWAIT) < 0 && errno == EINTR) continue;
  // SAFETY: the id is its own until it is reaped; it must not be used after that.
  pthread_mutex_lock(&lock);
  launch->pid = 0;
  pid_t reaped = waitpid(pid, &status, 0);
  pthread_mutex_unlock(&lock);
  if (reaped != pid) return fail(failure, "wait for the program");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int open_folder(const char *path, struct failure *failure) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return folder < 0 ? fail(failure, "open the claimed folder") : folder;
}

/** SAFETY: claimed before the check for a cancellation, released when the program runs: `find_claim` relies on both. */
static int execute(struct launch *launch, struct spawned *spawned, struct failure *failure) {
  int *claim = &launch->plan.claim;
  int outcome = -1;
  if (launch->claim != NULL && (*claim = open_folder(launch->claim, failure)) < 0) return -1;
  if (*claim >= 0 && flock(*claim, LOCK_SH) < 0) fail(failure, "claim the folder");
  else if (!is_wanted(launch)) fail_with(failure, ECANCELED, "given up before it began");
  else outcome = spawn_program(&launch->plan, spawned, failure);
  if (*claim >= 0) close(*claim);
  return outcome;
}

static void *run(void *argument) {
  struct launch *launch = argument;
  struct failure failure = {0};
  struct spawned spawned;
  int code = -1;
  if (execute(launch, &spawned, &failure) == 0) {
    code = wait_for(launch, spawned.pid, &failure);
    close_far_ends(&spawned);
  }
  take_away(launch);
  char text[16];
  snprintf(text, sizeof text, "%d", code);
  struct answer answer = {.text = text};
  write_answer(launch->id, &answer, &failure);
  free(launch);
  return NULL;
}

int start_launch(const struct launch_plan *plan, struct failure *failure) {
  struct launch *launch = copy_plan(plan);
  if (launch == NULL) return fail_with(failure, ENOMEM, "launch");
  add(launch);
  if (start_detached_thread(run, launch)) return 0;
  take_away(launch);
  free(launch);
  return fail_with(failure, EAGAIN, "start a thread");
}

void end_launch(const char *name) {
  pthread_mutex_lock(&lock);
  for (struct launch *launch = launches; launch != NULL; launch = launch->next) {
    if (strcmp(launch->name, name) != 0) continue;
    launch->is_given_up = true;
    // SAFETY: the program leads its own process group and is not reaped, so the id is still its own.
    if (launch->pid > 0) kill(-launch->pid, SIGKILL);
  }
  pthread_mutex_unlock(&lock);
}

int find_claim(const char *folder, bool *is_claimed, struct failure *failure) {
  int looked_at = open_folder(folder, failure);
  if (looked_at < 0) return -1;
  int outcome = flock(looked_at, LOCK_EX | LOCK_NB);
  *is_claimed = outcome < 0 && errno == EWOULDBLOCK;
  if (*is_claimed) outcome = 0;
  else if (outcome < 0) fail(failure, "look for a claim");
  close(looked_at);
  return outcome;
}
