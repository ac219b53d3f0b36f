#include "answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int write_answer(const char *id, const struct answer *answer, const struct failure *failure) {
  char text[512];
  int length;
  if (failure->error == 0) {
    length = snprintf(text, sizeof text, "%s\tok\t%s\n", id, answer->text == NULL ? "" : answer->text);
  } else {
    const char *name = strerrorname_np(failure->error);
    length = snprintf(text, sizeof text, "%s\terr\t%s\t%s\n", id, name == NULL ? "EIO" : name, failure->step);
  }
  ssize_t written;
  do {
    written = write(STDOUT_FILENO, text, (size_t)length);
  } while (written < 0 && errno == EINTR);
  return written == length ? 0 : -1;
}
