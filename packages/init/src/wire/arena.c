#include "wire/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"

enum { BLOCK = 4096 };

struct arena_block {
  struct arena_block *next;
  size_t used, size;
  max_align_t data[];
};

void *arena_take(struct arena *arena, size_t bytes) {
  if (bytes > 64u * 1024 * 1024) return arena->failed = true, NULL;
  size_t aligned = (bytes + 15) & ~(size_t)15;
  struct arena_block *block = arena->blocks;
  if (!block || block->size - block->used < aligned) {
    size_t size = aligned > BLOCK ? aligned : BLOCK;
    block = malloc(sizeof *block + size);
    if (!block) return arena->failed = true, NULL;
    block->size = size;
    block->used = 0;
    block->next = arena->blocks;
    arena->blocks = block;
  }
  void *start = (char *)block->data + block->used;
  block->used += aligned;
  return start;
}

char *arena_copy(struct arena *arena, const char *text, size_t length) {
  char *copy = arena_take(arena, length + 1);
  if (!copy) return NULL;
  if (length) memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

void arena_free(struct arena *arena) {
  while (arena->blocks) {
    struct arena_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  arena->failed = false;
}

bool strings_push(struct arena *arena, struct strings *list, char *text) {
  if (list->count + 1 >= list->capacity) {
    size_t capacity = list->capacity ? list->capacity * 2 : 16;
    if (capacity > 2 * STRINGS_MAX) return false;
    char **grown = arena_take(arena, capacity * sizeof *grown);
    if (!grown) return false;
    if (list->count) memcpy(grown, list->at, list->count * sizeof *grown);
    list->at = grown;
    list->capacity = capacity;
  }
  list->at[list->count++] = text;
  list->at[list->count] = NULL;
  return true;
}
