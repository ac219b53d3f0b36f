#ifndef SVC_OBSERVER_H
#define SVC_OBSERVER_H

#include "wire/session.h"

/*
 * One inotify instance serves all clients: the host counts instances of all sandboxes together. So its queue is always
 * drained, independent of slow clients, and each observer has a short queue of its own that ends in an `overflow` when it is full.
 *
 * file-watch.c  requests
 * events.c      handles inotify's events, and reports to observers
 * scan.c        adds watches to folders and lists them, in slices
 * tree.c        the watched folders, by place in the tree and by inotify's number
 * inotify.c     the instance and its queue
 * observer.c    an observer: its queue, its messages, its end
 */

struct observer;

struct observer_owner {
  /** It reports nothing more: its folders are released. May be called again. */
  void (*over)(struct observer *);
  /** The last observer has ended. */
  void (*none_left)(void);
};

/** One svc.watch.start. Lives until its last message was sent, also after the end of its watch. */
struct observer {
  const struct observer_owner *owner;
  struct session session;
  struct list all;
  struct task pump;
  struct folder *root; // NULL once it has ended
  char *path;          // without symbolic links
  bool is_recursive, is_folder;
  bool is_started;      // svc.watch.started was sent
  bool is_deaf;         // its queue was full: nothing is added until it is sent
  bool wants_overflow;  // sent when all folders were listed again
  unsigned folders;     // watched, or about to be
  unsigned unscanned;   // of these, waiting to be listed
  struct writer events; // encoded, not sent yet
  size_t event_count, last_event;
  const char *end_reason; // svc.watch.end is due …
  char failure[160];      // … or svc.watch.failed
  int failure_errno;
};

extern struct list observers;

enum change { CREATED, MODIFIED, REMOVED, RENAMED, ATTRIBUTES };
/** Takes ownership of the path. NULL: no memory, and the caller still owns the path. */
struct observer *observer_open(struct conn *, uint32_t id, char *path, const struct observer_owner *);
unsigned observer_count(void);
struct observer *observer_find(struct conn *, uint32_t id);
/** The client has stopped the watch. */
void observer_stop(struct observer *);
/** The entry at `path`, relative to the root, has changed; `from` is its old path after a rename. NULL: the path is too long. */
void observer_tell(struct observer *, enum change, const char *path, bool is_folder, const char *from);
/** Changes were missed. */
void observer_tell_overflow(struct observer *);
/** The root is gone: "removed", "moved" or "unmounted". Its folders are released when this returns. */
void observer_end(struct observer *, const char *reason);
void observer_fail(struct observer *, int error, const char *message);
/** All folders are watched. */
void observer_scanned(struct observer *);
/** svc.watch.failed, also for a request that never became an observer. */
void observer_refuse(struct conn *, uint32_t id, int error, const char *message);

#endif
