#include "slow-call.h"

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "detached-thread.h"
#include "unmount.h"

/** The request line is overwritten by the next one; this is what the thread keeps. */
struct slow_unmount {
  char id[24];
  char target[];
};

static void *run(void *argument) {
  struct slow_unmount *call = argument;
  struct failure failure = {0};
  struct answer answer = {0};
  unmount_all(call->target, &failure);
  write_answer(call->id, &answer, &failure);
  free(call);
  return NULL;
}

bool start_slow_call(const struct request *request) {
  struct failure failure = {0};
  if (strcmp(request->call, "unmount") != 0 || request->argument_count != 1) return false;
  if (check_path(request->arguments[0], &failure) < 0) return false;
  size_t length = strlen(request->arguments[0]) + 1;
  struct slow_unmount *call = malloc(sizeof *call + length);
  if (call == NULL) return false;
  strncpy(call->id, request->id, sizeof call->id - 1);
  call->id[sizeof call->id - 1] = '\0';
  memcpy(call->target, request->arguments[0], length);
  if (start_detached_thread(run, call)) return true;
  free(call);
  return false;
}
