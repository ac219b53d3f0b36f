#ifndef SVC_LINES_H
#define SVC_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "request.h"

/** Splits a byte stream into lines of at most MAX_LINE_BYTES; longer ones are skipped up to their newline. */
struct line_reader {
  size_t start;
  size_t end;
  bool skipping;
  char bytes[MAX_LINE_BYTES];
};

enum line_outcome { LINE_READ, LINE_TOO_LONG, LINE_END, LINE_FAILED };

/** The line is NUL-terminated, has lost its newline, and stays valid until the next call. An unfinished last line is dropped. */
enum line_outcome read_line(struct line_reader *reader, int fd, char **line);

#endif
