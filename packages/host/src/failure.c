#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void record(struct failure *failure, int error, const char *format, va_list arguments) {
  if (failure->error != 0) return;
  failure->error = error == 0 ? EIO : error;
  vsnprintf(failure->step, sizeof failure->step, format, arguments);
}

int fail(struct failure *failure, const char *format, ...) {
  int error = errno;
  va_list arguments;
  va_start(arguments, format);
  record(failure, error, format, arguments);
  va_end(arguments);
  return -1;
}

int fail_with(struct failure *failure, int error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  record(failure, error, format, arguments);
  va_end(arguments);
  return -1;
}
