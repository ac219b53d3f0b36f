#ifndef SVC_ARENA_H
#define SVC_ARENA_H

#include <stdbool.h>
#include <stddef.h>

// Memory that lives as long as one request and is freed at once.
struct arena {
  struct arena_block *blocks;
  bool failed; // sticky: an allocation failed
};

void *arena_take(struct arena *, size_t bytes);
char *arena_copy(struct arena *, const char *text, size_t length);
void arena_free(struct arena *);

// A list of C strings that grows; `at[count]` is always NULL once something was pushed.
struct strings {
  char **at;
  size_t count, capacity;
};

/** False when memory or STRINGS_MAX ran out. */
bool strings_push(struct arena *, struct strings *, char *text);

#endif
