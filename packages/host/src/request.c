#include "request.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static int hex_digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  return -1;
}

/** Decodes in place; the result is never longer than the input. */
static int decode(char *field, struct failure *failure) {
  char *out = field;
  for (const char *in = field; *in != '\0'; in++) {
    if (*in != '%') {
      *out++ = *in;
      continue;
    }
    int high = hex_digit(in[1]);
    int low = high < 0 ? -1 : hex_digit(in[2]);
    if (low < 0) return fail_with(failure, EINVAL, "a percent sign without two hexadecimal digits");
    char decoded = (char)(high * 16 + low);
    if (decoded == '\0') return fail_with(failure, EINVAL, "an argument contains NUL");
    *out++ = decoded;
    in += 2;
  }
  *out = '\0';
  return 0;
}

/** The answer repeats the id, so it must be safe there without decoding. */
static bool is_id(const char *text) {
  size_t length = strspn(text, "0123456789");
  return length > 0 && length <= 19 && text[length] == '\0';
}

int parse_request(char *line, struct request *request, struct failure *failure) {
  request->id = NULL;
  request->call = NULL;
  request->argument_count = 0;
  char *rest = line;
  char *id = strsep(&rest, "\t");
  if (!is_id(id)) return fail_with(failure, EINVAL, "the request has no numeric id");
  request->id = id;
  char *call = strsep(&rest, "\t");
  if (call == NULL) return fail_with(failure, EINVAL, "the request names no call");
  request->call = call;
  while (rest != NULL) {
    if (request->argument_count == MAX_ARGUMENTS) return fail_with(failure, E2BIG, "too many arguments");
    char *argument = strsep(&rest, "\t");
    if (decode(argument, failure) < 0) return -1;
    request->arguments[request->argument_count++] = argument;
  }
  return 0;
}

int check_path(const char *path, struct failure *failure) {
  if (strlen(path) >= PATH_MAX) return fail_with(failure, ENAMETOOLONG, "a path is too long");
  const char *rest = path;
  do {
    if (*rest != '/') return fail_with(failure, EINVAL, "a path is not absolute");
    const char *name = rest + 1;
    size_t length = strcspn(name, "/");
    bool is_dots = (length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.');
    if (length == 0 || is_dots) return fail_with(failure, EINVAL, "a path has an empty, . or .. part");
    rest = name + length;
  } while (*rest != '\0');
  return 0;
}

int parse_number(const char *text, uint32_t lowest, uint32_t highest, uint32_t *value, struct failure *failure) {
  size_t length = strspn(text, "0123456789");
  if (length == 0 || length > 10 || text[length] != '\0') return fail_with(failure, EINVAL, "an argument is not a number");
  uint64_t number = 0;
  for (const char *digit = text; *digit != '\0'; digit++) number = number * 10 + (uint64_t)(*digit - '0');
  if (number < lowest || number > highest) {
    return fail_with(failure, ERANGE, "a number is not between %u and %u", lowest, highest);
  }
  *value = (uint32_t)number;
  return 0;
}

int parse_flag(const char *text, bool *value, struct failure *failure) {
  uint32_t number = 0;
  if (parse_number(text, 0, 1, &number, failure) < 0) return -1;
  *value = number == 1;
  return 0;
}
