#ifndef SVC_WATCH_WORK_H
#define SVC_WATCH_WORK_H

#include <sys/types.h>

#include "wire/session.h"

/*
 * One inotify instance serves all clients: the host counts instances of all sandboxes together. So its queue is always
 * emptied, whoever is slow, and each observer has a short queue of its own that ends in an `overflow` when it is full.
 *
 * file-watch.c    requests, the queue of each observer, its end
 * watch-tree.c    which folders are watched, by place in the tree and by inotify's number
 * watch-scan.c    begins to watch folders and lists them, in slices
 * watch-events.c  reads inotify and tells observers
 */

/** One svc.watch.start. Lives until its last message was sent, also after the end of what it watches. */
struct observer {
  struct session session;
  struct list all;
  struct task pump;
  struct folder *root; // NULL once it has ended
  char *path;          // without symbolic links
  bool is_recursive, is_folder;
  bool is_started;       // svc.watch.started was sent
  bool is_deaf;          // its queue was full: nothing is added until it was sent
  bool wants_overflow;   // to be told when all folders were listed again
  unsigned folders;      // it watches or is about to
  unsigned unscanned;    // of these, waiting to be listed
  struct writer events;  // encoded, not sent yet
  size_t event_count, last_event;
  const char *end_reason; // svc.watch.end is due …
  char failure[160];      // … or svc.watch.failed
  int failure_errno;
};

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

extern struct list observers;
extern int inotify_fd; // -1 while there are no observers

// file-watch.c
enum change { CREATED, MODIFIED, REMOVED, RENAMED, ATTRIBUTES };
/** `name` in `folder` has changed; `from` is its old path when it was renamed. */
void observer_tell(struct observer *, enum change, const struct folder *, const char *name, bool is_folder, const char *from);
/** Changes were missed. */
void observer_tell_overflow(struct observer *);
/** What it watches is there no more: "removed", "moved" or "unmounted". Its folders are gone when this returns. */
void observer_end(struct observer *, const char *reason);
void observer_fail(struct observer *, int error, const char *message);
/** All folders are watched. */
void observer_scanned(struct observer *);

// watch-tree.c
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

// watch-scan.c
void scan_queue(struct folder *);
void scan_forget(struct folder *);
bool scans_are_waiting(void);
/** Forgets what no event that is still to come can be about. */
void scans_settle(void);
/** Whether the listing of a new folder has told of this entry, and no event since has. */
bool scan_has_seen(struct folder *, const char *name);

// watch-events.c
bool events_open(void);
void events_close(void);
/** Nothing waits to be listed any more. */
void events_resume(void);
/** Bytes handled since the start; and where the events end that are queued now. */
uint64_t events_position(void);
uint64_t events_queued(void);

#endif
