#ifndef SVC_WATCH_TREE_H
#define SVC_WATCH_TREE_H

#include <sys/types.h>

#include "watch/observer.h"

/** A folder that is watched, or the one file. `name` is relative to the parent, "" for the root. */
struct folder {
  struct observer *observer;
  struct folder *parent, *next; // next: in the bucket of its number
  struct list children, siblings, scan;
  int number;      // inotify's; -1 while it is not watched
  bool is_new;     // what it holds is told as created
  uint64_t bound;  // where events ended when it was opened: older ones about its name are not about this folder
  uint64_t listed; // where events ended when it was watched, before it was listed: older ones about its entries are history
  dev_t device;
  ino_t inode;
  struct seen *seen;
  char *name;
};

/** Called by the tree: a folder is to be listed (`add`), or no more (`drop`). */
struct folder_lister {
  void (*add)(struct folder *);
  void (*drop)(struct folder *);
};
void folders_init(const struct folder_lister *);

/** The new folder waits for its scan. False: a limit was reached or memory ran out, and the observer has failed. */
bool folder_add(struct observer *, struct folder *parent, const char *name, bool is_new);
/** With all below it. */
void folder_drop(struct folder *);
void folder_move(struct folder *, struct folder *parent, const char *name);
bool folder_is_below(const struct folder *, const struct folder *top);
void folder_number(struct folder *, int number);
struct folder *folder_find(const struct observer *, int number);
struct folder *folder_child(const struct folder *, const char *name);
/** Path of an entry relative to the root, into `path`. False: longer than PATH_MAX. */
bool folder_path(const struct folder *, const char *name, char *path);

/** Tells the observer that `name` in the folder has changed. */
void folder_tell(const struct folder *, enum change, const char *name, bool is_folder, const char *from);

#endif
