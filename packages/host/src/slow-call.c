#include "slow-call.h"

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "calls.h"
#include "detached-thread.h"

static const char *const SLOW_CALLS[] = {"unmount", "copyFrozen", "thaw", "writeDirectly"};

static void free_copy(struct request *request) {
  free((void *)request->id);
  free((void *)request->call);
  for (size_t index = 0; index < request->argument_count; index++) free((void *)request->arguments[index]);
  free(request);
}

/** The request line is overwritten by the next one; the thread keeps this copy. */
static struct request *copy_request(const struct request *request) {
  struct request *copy = calloc(1, sizeof *copy);
  if (copy == NULL) return NULL;
  copy->id = strdup(request->id);
  copy->call = strdup(request->call);
  bool is_whole = copy->id != NULL && copy->call != NULL;
  for (size_t index = 0; index < request->argument_count && is_whole; index++) {
    copy->arguments[index] = strdup(request->arguments[index]);
    copy->argument_count = index + 1;
    is_whole = copy->arguments[index] != NULL;
  }
  if (is_whole) return copy;
  free_copy(copy);
  return NULL;
}

static void *run(void *argument) {
  struct request *request = argument;
  struct failure failure = {0};
  struct answer answer = {0};
  run_call(request, &answer, &failure);
  write_answer(request->id, &answer, &failure);
  free_copy(request);
  return NULL;
}

static bool is_slow(const char *call) {
  for (size_t index = 0; index < sizeof SLOW_CALLS / sizeof *SLOW_CALLS; index++) {
    if (strcmp(SLOW_CALLS[index], call) == 0) return true;
  }
  return false;
}

bool start_slow_call(const struct request *request) {
  struct request *copy = is_slow(request->call) ? copy_request(request) : NULL;
  if (copy == NULL) return false;
  if (start_detached_thread(run, copy)) return true;
  free_copy(copy);
  return false;
}
