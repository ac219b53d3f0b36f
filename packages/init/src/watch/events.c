#include "watch/events.h"

#include <limits.h>

#include "bounds.h"
#include "watch/inotify.h"
#include "watch/scan.h"

static bool has_waited; // timeout of the other half of the next rename
static bool is_paused;

static void handle_some(void);
static void on_resume(struct task *);
static void on_waited(struct timer *);
static struct task resume = {{&resume.node, &resume.node}, on_resume};
static struct timer wait_for_rename = {{&wait_for_rename.node, &wait_for_rename.node}, 0, on_waited};

static void handle(const struct inotify_event *);
static void handle_move(const struct inotify_event *from, const struct inotify_event *to);

/** All listings are done. */
static void on_listed(void) {
  if (inotify_fd >= 0) task_queue(&resume);
}

bool events_open(void) {
  scan_init(on_listed);
  return inotify_fd >= 0 || inotify_start(handle_some);
}

void events_close(void) {
  inotify_stop();
  timer_stop(&wait_for_rename);
  task_cancel(&resume);
  has_waited = is_paused = false;
}

/** The two halves are queued at nearly the same moment, perhaps with others in between. NULL: not there. */
static struct inotify_event *second_half(const struct inotify_event *from) {
  struct inotify_event *event;
  for (size_t offset = inotify_size(from); (event = inotify_event_at(offset)); offset += inotify_size(event)) {
    if (event->mask & IN_MOVED_TO && event->cookie == from->cookie) return event;
  }
  return NULL;
}

/** False: its other half may still come. */
static bool handle_next(void) {
  struct inotify_event *event = inotify_event_at(0);
  if (event->mask & IN_MOVED_FROM) {
    struct inotify_event *to = second_half(event);
    if (!to && !has_waited) {
      inotify_read();
      event = inotify_event_at(0);
      to = second_half(event);
    }
    if (!to && !has_waited && !inotify_event_at(inotify_size(event))) {
      if (!timer_is_running(&wait_for_rename)) timer_start(&wait_for_rename, WATCH_RENAME_MS);
      return false;
    }
    handle_move(event, to);
    if (to) to->mask = 0; // handled
  } else {
    handle(event);
  }
  timer_stop(&wait_for_rename);
  has_waited = false;
  inotify_done();
  return true;
}

/** Handles the queued events, and reads once when there are none: a flood of changes must not block other work. */
static void handle_some(void) {
  if (inotify_fd < 0) return;
  if (!inotify_event_at(0) && !scans_are_waiting()) inotify_read();
  while (inotify_event_at(0) && !scans_are_waiting() && handle_next());
  bool is_held = scans_are_waiting(); // on_listed continues
  if (is_held != is_paused) inotify_want(!is_held);
  is_paused = is_held;
  scans_settle();
}

static void on_resume(struct task *task) {
  (void)task;
  handle_some();
}

static void on_waited(struct timer *timer) {
  (void)timer;
  has_waited = true;
  handle_some();
}

/** Folders may have come, gone or moved unseen: all are listed again, then the client is notified. */
static void begin_anew(struct observer *observer) {
  if (!observer->root) return;
  folder_drop(observer->root);
  observer->wants_overflow = true;
  folder_add(observer, NULL, "", false);
}

/**
 * Listings see a later state than the events that are handled: this event about a name is older than the state, known to us and the client,
 * of the folder that has the name now.
 */
static bool is_outrun(const struct folder *child) { return child && child->bound > inotify_position(); }

static void handle_removed(struct folder *folder, const char *name, bool is_folder) {
  struct folder *child = is_folder ? folder_child(folder, name) : NULL;
  scan_has_seen(folder, name); // its next appearance is reported
  folder_tell(folder, REMOVED, name, is_folder, NULL);
  // A folder that was listed before this event is found again: the event that created it is still queued.
  if (child) folder_drop(child);
}

static void handle_created(struct observer *observer, struct folder *folder, const char *name, bool is_folder) {
  if (scan_has_seen(folder, name)) return;
  // Everything reported of it is taken back, and reported anew.
  if (is_folder && is_outrun(folder_child(folder, name))) handle_removed(folder, name, true);
  folder_tell(folder, CREATED, name, is_folder, NULL);
  if (is_folder && observer->is_recursive) folder_add(observer, folder, name, true);
}

/** The events of the root itself; those of other folders are reported by their parent. */
static void handle_self(struct observer *observer, struct folder *folder, uint32_t mask) {
  bool is_root = !folder->parent;
  if (is_root && mask & IN_UNMOUNT) observer_end(observer, "unmounted");
  else if (is_root && mask & IN_MOVE_SELF) observer_end(observer, "moved");
  else if (is_root && mask & (IN_DELETE_SELF | IN_IGNORED)) observer_end(observer, "removed");
  else if (mask & IN_IGNORED) folder_drop(folder);
  else if (is_root && mask & IN_ATTRIB) folder_tell(folder, ATTRIBUTES, "", observer->is_folder, NULL);
  else if (is_root && mask & IN_MODIFY) folder_tell(folder, MODIFIED, "", observer->is_folder, NULL);
}

/** The folder of the event at this position; NULL when the event is outdated: the folder was listed later. */
static struct folder *find(const struct observer *observer, const struct inotify_event *event, uint64_t event_position) {
  struct folder *folder = event ? folder_find(observer, event->wd) : NULL;
  return folder && event_position >= folder->listed ? folder : NULL;
}

static void handle_for(struct observer *observer, const struct inotify_event *event) {
  bool is_folder = event->mask & IN_ISDIR;
  if (event->mask & IN_Q_OVERFLOW) return begin_anew(observer);
  // The kernel merges equal consecutive events, so a change of content may be newer than its place in the queue.
  bool is_structure = event->len && event->mask & (IN_CREATE | IN_MOVED_TO | IN_DELETE);
  struct folder *folder = is_structure ? find(observer, event, inotify_position()) : folder_find(observer, event->wd);
  if (!folder) return;
  if (!event->len) handle_self(observer, folder, event->mask);
  else if (event->mask & (IN_CREATE | IN_MOVED_TO)) handle_created(observer, folder, event->name, is_folder);
  else if (event->mask & IN_DELETE) handle_removed(folder, event->name, is_folder);
  else if (event->mask & IN_MODIFY) folder_tell(folder, MODIFIED, event->name, is_folder, NULL);
  else if (event->mask & IN_ATTRIB) folder_tell(folder, ATTRIBUTES, event->name, is_folder, NULL);
}

static void handle(const struct inotify_event *event) {
  for (struct list *node = observers.next; node != &observers; node = node->next) {
    handle_for(containing(node, struct observer, all), event);
  }
}

/** A folder whose content must be known as well as its name: a rename is reported when both are as they were at that moment. */
static void move_folder(struct observer *observer, struct folder *from, const char *old_name, struct folder *to, const char *name,
                        const char *old_path) {
  struct folder *moved = folder_child(from, old_name), *replaced = folder_child(to, name);
  if (!moved || is_outrun(moved) || is_outrun(replaced)) {
    handle_removed(from, old_name, true);
    return handle_created(observer, to, name, true);
  }
  // SAFETY: a cycle in the tree would cause an endless loop. No file system has one, so our state is wrong.
  if (folder_is_below(to, moved)) return begin_anew(observer);
  folder_tell(to, RENAMED, name, true, old_path);
  if (replaced && replaced != moved) folder_drop(replaced);
  folder_move(moved, to, name);
}

static void handle_renamed(struct observer *observer, struct folder *from, const char *old_name, struct folder *to,
                           const char *name, bool is_folder) {
  char old_path[PATH_MAX];
  scan_has_seen(from, old_name);
  scan_has_seen(to, name);
  if (!folder_path(from, old_name, old_path)) old_path[0] = 0; // reported when it was created, so the observer has failed
  if (is_folder && observer->is_recursive) move_folder(observer, from, old_name, to, name, old_path);
  else folder_tell(to, RENAMED, name, is_folder, old_path);
}

static void handle_move(const struct inotify_event *from, const struct inotify_event *to) {
  bool is_folder = from->mask & IN_ISDIR;
  uint64_t to_position = to ? inotify_position() + (size_t)((const char *)to - (const char *)from) : 0;
  for (struct list *node = observers.next; node != &observers; node = node->next) {
    struct observer *observer = containing(node, struct observer, all);
    struct folder *source_folder = find(observer, from, inotify_position()), *target = find(observer, to, to_position);
    if (source_folder && target) handle_renamed(observer, source_folder, from->name, target, to->name, is_folder);
    else if (source_folder) handle_removed(source_folder, from->name, is_folder);
    else if (target) handle_created(observer, target, to->name, is_folder);
  }
}
