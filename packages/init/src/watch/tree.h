#ifndef SVC_WATCH_TREE_H
#define SVC_WATCH_TREE_H

#include <sys/types.h>

#include "watch/observer.h"

/** A watched folder, or the one watched file. `name` is relative to the parent, "" for the root. */
struct folder {
  struct observer *observer;
  struct folder *parent, *next; // next: in the hash bucket of its number
  struct list children, siblings, scan;
  int number;      // inotify's; -1 while unwatched
  bool is_new;     // its contents are reported as created
  uint64_t bound;  // end of events when it was opened: older ones about its name mean another folder
  uint64_t listed; // end of events when it was watched, before its listing: older ones about its entries are outdated
  dev_t device;
  ino_t inode;
  struct seen *seen;
  char *name;
};

/** Called by the tree: a folder has to be listed (`add`), or no longer (`drop`). */
struct folder_lister {
  void (*add)(struct folder *);
  void (*drop)(struct folder *);
};
void folders_init(const struct folder_lister *);

/** Queues the new folder for its listing. False: a limit was reached or memory ran out, and the observer has failed. */
bool folder_add(struct observer *, struct folder *parent, const char *name, bool is_new);
/** With its subtree. */
void folder_drop(struct folder *);
void folder_move(struct folder *, struct folder *parent, const char *name);
bool folder_is_below(const struct folder *, const struct folder *top);
void folder_number(struct folder *, int number);
struct folder *folder_find(const struct observer *, int number);
struct folder *folder_child(const struct folder *, const char *name);
/** Path of an entry relative to the root, into `path`. False: longer than PATH_MAX. */
bool folder_path(const struct folder *, const char *name, char *path);

/** Reports to the observer that `name` in the folder has changed. */
void folder_tell(const struct folder *, enum change, const char *name, bool is_folder, const char *from);

#endif
