#ifndef SVC_REQUEST_H
#define SVC_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"

enum { MAX_LINE_BYTES = 256 * 1024, MAX_ARGUMENTS = 600 };

/**
 * One request line: `id TAB call TAB argument…`, every field percent-encoded. The strings point into the line,
 * which is decoded in place; a decoded string contains no NUL.
 */
struct request {
  const char *id;
  const char *call;
  size_t argument_count;
  const char *arguments[MAX_ARGUMENTS];
};

/** Splits and decodes `line` (NUL-terminated, without the newline). On failure `id` is still set when it could be read. */
int parse_request(char *line, struct request *request, struct failure *failure);

/** An absolute path below `/`, plainly written (no empty, `.` or `..` part), not longer than the kernel takes. */
int check_path(const char *path, struct failure *failure);

/** A decimal number between the bounds, digits only. */
int parse_number(const char *text, uint32_t lowest, uint32_t highest, uint32_t *value, struct failure *failure);

/** `0` or `1`. */
int parse_flag(const char *text, bool *value, struct failure *failure);

#endif
