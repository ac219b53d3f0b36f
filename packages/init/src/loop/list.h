#ifndef SVC_LIST_H
#define SVC_LIST_H

#include <stdbool.h>
#include <stddef.h>

// An intrusive circular list. A node that is in no list points to itself.
struct list {
  struct list *prev, *next;
};

#define containing(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))

static inline void list_init(struct list *node) { node->prev = node->next = node; }
static inline bool list_is_empty(const struct list *node) { return node->next == node; }

static inline void list_remove(struct list *node) {
  node->prev->next = node->next;
  node->next->prev = node->prev;
  list_init(node);
}

static inline void list_append(struct list *head, struct list *node) {
  node->prev = head->prev;
  node->next = head;
  head->prev->next = node;
  head->prev = node;
}

#endif
