#ifndef SVC_OBSERVER_H
#define SVC_OBSERVER_H

#include "wire/session.h"

/*
 * One inotify instance serves all clients: the host counts instances of all sandboxes together. So its queue is always
 * emptied, whoever is slow, and each observer has a short queue of its own that ends in an `overflow` when it is full.
 *
 * file-watch.c  requests
 * events.c      handles what inotify tells, and tells observers
 * scan.c        begins to watch folders and lists them, in slices
 * tree.c        which folders are watched, by place in the tree and by inotify's number
 * inotify.c     the instance and its queue
 * observer.c    who is told: the queue of each, its messages, its end
 */

struct observer;

struct observer_owner {
  /** It is told of nothing more: gives up its folders. May be called again. */
  void (*over)(struct observer *);
  /** That was the last one. */
  void (*none_left)(void);
};

/** One svc.watch.start. Lives until its last message was sent, also after the end of what it watches. */
struct observer {
  const struct observer_owner *owner;
  struct session session;
  struct list all;
  struct task pump;
  struct folder *root; // NULL once it has ended
  char *path;          // without symbolic links
  bool is_recursive, is_folder;
  bool is_started;      // svc.watch.started was sent
  bool is_deaf;         // its queue was full: nothing is added until it was sent
  bool wants_overflow;  // to be told when all folders were listed again
  unsigned folders;     // it watches or is about to
  unsigned unscanned;   // of these, waiting to be listed
  struct writer events; // encoded, not sent yet
  size_t event_count, last_event;
  const char *end_reason; // svc.watch.end is due …
  char failure[160];      // … or svc.watch.failed
  int failure_errno;
};

extern struct list observers;

enum change { CREATED, MODIFIED, REMOVED, RENAMED, ATTRIBUTES };
/** Takes the path. NULL: there is no memory, and the path is still the caller's. */
struct observer *observer_open(struct conn *, uint32_t id, char *path, const struct observer_owner *);
unsigned observer_count(void);
struct observer *observer_find(struct conn *, uint32_t id);
/** The client wants no more. */
void observer_stop(struct observer *);
/** What is at `path`, relative to the root, has changed; `from` is its old path when it was renamed. NULL: the path is too long. */
void observer_tell(struct observer *, enum change, const char *path, bool is_folder, const char *from);
/** Changes were missed. */
void observer_tell_overflow(struct observer *);
/** What it watches is there no more: "removed", "moved" or "unmounted". Its folders are gone when this returns. */
void observer_end(struct observer *, const char *reason);
void observer_fail(struct observer *, int error, const char *message);
/** All folders are watched. */
void observer_scanned(struct observer *);
/** svc.watch.failed, for a request that never became an observer too. */
void observer_refuse(struct conn *, uint32_t id, int error, const char *message);

#endif
