#include "watch/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "bounds.h"
#include "watch/inotify.h"

enum { BUCKETS = 4096 };

static struct folder *table[BUCKETS];
static unsigned folder_count;
static const struct folder_lister *lister;

void folders_init(const struct folder_lister *new_lister) { lister = new_lister; }

static struct folder **bucket_of(int number) { return &table[(unsigned)number % BUCKETS]; }

bool folder_add(struct observer *observer, struct folder *parent, const char *name, bool is_new) {
  char message[128];
  if (observer->folders >= WATCH_FOLDERS_MAX || folder_count >= WATCH_FOLDERS_TOTAL) {
    bool is_own = observer->folders >= WATCH_FOLDERS_MAX;
    snprintf(message, sizeof message, "watch: more than %d folders, the most that %s; watch less of the tree",
             is_own ? WATCH_FOLDERS_MAX : WATCH_FOLDERS_TOTAL, is_own ? "one watch covers" : "all watches of a sandbox cover");
    return observer_fail(observer, 0, message), false;
  }
  struct folder *folder = calloc(1, sizeof *folder);
  char *copy = folder ? strdup(name) : NULL;
  if (!copy) return free(folder), observer_fail(observer, ENOMEM, "watch: out of memory"), false;
  *folder = (struct folder){.observer = observer, .parent = parent, .number = -1, .is_new = is_new, .name = copy};
  list_init(&folder->children);
  list_init(&folder->siblings);
  list_init(&folder->scan);
  if (parent) list_append(&parent->children, &folder->siblings);
  else observer->root = folder;
  observer->folders++;
  folder_count++;
  lister->add(folder);
  return true;
}

/** True: no other observer watches this folder. */
static bool leave_bucket(struct folder *folder) {
  bool is_last = true;
  for (struct folder **link = bucket_of(folder->number); *link;) {
    if (*link == folder) {
      *link = folder->next;
    } else {
      is_last &= (*link)->number != folder->number;
      link = &(*link)->next;
    }
  }
  return is_last;
}

static void drop_one(struct folder *folder) {
  lister->drop(folder);
  // Fails when the folder is deleted, which removes inotify's watch too.
  if (folder->number >= 0 && leave_bucket(folder)) inotify_rm_watch(inotify_fd, folder->number);
  if (!folder->parent) folder->observer->root = NULL;
  folder->observer->folders--;
  folder_count--;
  list_remove(&folder->siblings);
  free(folder->name);
  free(folder);
}

void folder_drop(struct folder *top) {
  // Depth first without recursion: the guest chooses the depth.
  for (struct folder *folder = top;;) {
    if (!list_is_empty(&folder->children)) {
      folder = containing(folder->children.next, struct folder, siblings);
      continue;
    }
    struct folder *parent = folder->parent;
    bool is_top = folder == top;
    drop_one(folder);
    if (is_top) return;
    folder = parent;
  }
}

/** The next folder below `top`, parents first; NULL at the end. */
static struct folder *next_below(struct folder *folder, const struct folder *top) {
  if (!list_is_empty(&folder->children)) return containing(folder->children.next, struct folder, siblings);
  for (; folder != top; folder = folder->parent) {
    if (folder->siblings.next != &folder->parent->children) return containing(folder->siblings.next, struct folder, siblings);
  }
  return NULL;
}

void folder_move(struct folder *folder, struct folder *parent, const char *name) {
  char *copy = strdup(name);
  if (!copy) return observer_fail(folder->observer, ENOMEM, "watch: out of memory");
  free(folder->name);
  folder->name = copy;
  folder->parent = parent;
  list_remove(&folder->siblings);
  list_append(&parent->children, &folder->siblings);
  // Folders that were missing under the old path are found under the new one.
  for (struct folder *below = folder; below; below = next_below(below, folder)) {
    if (below->number < 0) lister->add(below);
  }
}

bool folder_is_below(const struct folder *folder, const struct folder *top) {
  while (folder && folder != top) folder = folder->parent;
  return folder && top;
}

void folder_number(struct folder *folder, int number) {
  folder->number = number;
  folder->next = *bucket_of(number);
  *bucket_of(number) = folder;
}

struct folder *folder_find(const struct observer *observer, int number) {
  struct folder *folder = *bucket_of(number);
  while (folder && (folder->number != number || folder->observer != observer)) folder = folder->next;
  return folder;
}

struct folder *folder_child(const struct folder *folder, const char *name) {
  for (struct list *node = folder->children.next; node != &folder->children; node = node->next) {
    struct folder *child = containing(node, struct folder, siblings);
    if (!strcmp(child->name, name)) return child;
  }
  return NULL;
}

bool folder_path(const struct folder *folder, const char *name, char *path) {
  size_t at = PATH_MAX - 1;
  path[at] = 0;
  for (const char *part = name;; part = folder->name, folder = folder->parent) {
    size_t length = strlen(part), slash = *part && path[at] ? 1 : 0;
    if (length + slash > at) return false;
    if (slash) path[--at] = '/';
    at -= length;
    memcpy(path + at, part, length);
    if (!folder) break;
  }
  memmove(path, path + at, PATH_MAX - at);
  return true;
}

void folder_tell(const struct folder *folder, enum change change, const char *name, bool is_folder, const char *from) {
  char path[PATH_MAX];
  observer_tell(folder->observer, change, folder_path(folder, name, path) ? path : NULL, is_folder, from);
}
