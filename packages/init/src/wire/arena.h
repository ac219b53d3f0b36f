#ifndef SVC_ARENA_H
#define SVC_ARENA_H

#include <stdbool.h>
#include <stddef.h>

// Memory of one request, which is freed at once.
struct arena {
  struct arena_block *blocks;
  bool failed; // sticky: an allocation failed
};

void *arena_take(struct arena *, size_t bytes);
char *arena_copy(struct arena *, const char *text, size_t length);
void arena_free(struct arena *);

// A growing list of C strings; `at[count]` is always NULL once a string was pushed.
struct strings {
  char **at;
  size_t count, capacity;
};

/** False when memory or STRINGS_MAX ran out. */
bool strings_push(struct arena *, struct strings *, char *text);

#endif
