#include "lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/** A line may contain NUL bytes; the parser stops at the first one and refuses the rest. */
enum line_outcome read_line(struct line_reader *reader, int fd, char **line) {
  for (;;) {
    char *first = reader->bytes + reader->start;
    char *newline = memchr(first, '\n', reader->end - reader->start);
    if (newline != NULL) {
      *newline = '\0';
      reader->start = (size_t)(newline - reader->bytes) + 1;
      bool skipped = reader->skipping;
      reader->skipping = false;
      *line = first;
      return skipped ? LINE_TOO_LONG : LINE_READ;
    }
    if (reader->skipping) {
      reader->start = reader->end = 0;
    } else if (reader->start > 0) {
      memmove(reader->bytes, first, reader->end - reader->start);
      reader->end -= reader->start;
      reader->start = 0;
    }
    if (reader->end == sizeof reader->bytes) {
      reader->skipping = true;
      reader->end = 0;
    }
    ssize_t got = read(fd, reader->bytes + reader->end, sizeof reader->bytes - reader->end);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return LINE_FAILED;
    if (got == 0) return LINE_END;
    reader->end += (size_t)got;
  }
}
