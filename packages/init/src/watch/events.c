#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bounds.h"
#include "loop/descriptors.h"
#include "watch/work.h"

enum { EVENTS_BUFFER = 16 * 1024 };

int inotify_fd = -1;
static struct watch source = {.fd = -1};
static char buffer[EVENTS_BUFFER] __attribute__((aligned(__alignof__(struct inotify_event))));
static size_t at, length;  // what was read and is not handled
static uint64_t position;  // bytes handled before `at`
static bool has_waited;    // the other half of the rename at `at` did not come
static bool is_paused;

static void on_ready(struct watch *, uint32_t events);
static void on_resume(struct task *);
static void on_waited(struct timer *);
static struct task resume = {{&resume.node, &resume.node}, on_resume};
static struct timer wait_for_rename = {{&wait_for_rename.node, &wait_for_rename.node}, 0, on_waited};

static void handle(const struct inotify_event *);
static void handle_move(const struct inotify_event *from, const struct inotify_event *to);

bool events_open(void) {
  if (inotify_fd >= 0) return true;
  int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) return false;
  bool is_reserved = is_reserved_fd(fd);
  if (is_reserved || !watch_add(&source, fd, EPOLLIN, on_ready)) {
    close(fd);
    return errno = is_reserved ? ENFILE : ENOMEM, false;
  }
  inotify_fd = fd;
  return true;
}

void events_close(void) {
  watch_close(&source);
  timer_stop(&wait_for_rename);
  task_cancel(&resume);
  inotify_fd = -1;
  position += length - at;
  at = length = 0;
  has_waited = is_paused = false;
}

void events_resume(void) {
  if (inotify_fd >= 0) task_queue(&resume);
}

uint64_t events_position(void) { return position; }

uint64_t events_queued(void) {
  int queued = 0;
  if (ioctl(inotify_fd, FIONREAD, &queued) < 0) queued = 0;
  return position + (length - at) + (size_t)queued;
}

/** Reads behind what is there. False: nothing came. */
static bool read_more(void) {
  memmove(buffer, buffer + at, length - at);
  length -= at;
  at = 0;
  ssize_t got = read(inotify_fd, buffer + length, sizeof buffer - length);
  if (got > 0) length += (size_t)got;
  return got > 0;
}

static struct inotify_event *event_at(size_t place) { return (struct inotify_event *)(void *)(buffer + place); }
static size_t size_of(const struct inotify_event *event) { return sizeof *event + event->len; }

/** The two halves are queued at nearly the same moment; others may come between them. NULL: not there. */
static struct inotify_event *second_half(const struct inotify_event *from) {
  for (size_t place = at + size_of(from); place < length; place += size_of(event_at(place))) {
    struct inotify_event *event = event_at(place);
    if (event->mask & IN_MOVED_TO && event->cookie == from->cookie) return event;
  }
  return NULL;
}

/** False: its other half may still come. */
static bool handle_next(void) {
  if (event_at(at)->mask & IN_MOVED_FROM) {
    struct inotify_event *to = second_half(event_at(at));
    if (!to && !has_waited && read_more()) to = second_half(event_at(at));
    if (!to && !has_waited && at + size_of(event_at(at)) == length) {
      if (!timer_is_running(&wait_for_rename)) timer_start(&wait_for_rename, WATCH_RENAME_MS);
      return false;
    }
    handle_move(event_at(at), to);
    if (to) to->mask = 0; // handled
  } else {
    handle(event_at(at));
  }
  timer_stop(&wait_for_rename);
  has_waited = false;
  position += size_of(event_at(at));
  at += size_of(event_at(at));
  return true;
}

/** Handles what was read, and reads once when that is nothing: a flood of changes must not stall the rest. */
static void handle_some(void) {
  if (inotify_fd < 0) return;
  if (at == length && !scans_are_waiting()) read_more();
  while (at < length && !scans_are_waiting() && handle_next());
  bool is_held = scans_are_waiting(); // events_resume goes on
  if (is_held != is_paused) watch_want(&source, is_held ? 0 : EPOLLIN);
  is_paused = is_held;
  scans_settle();
}

static void on_ready(struct watch *watch, uint32_t events) {
  (void)watch, (void)events;
  handle_some();
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

/** Folders may have come, gone or moved unseen: all are found anew, then the client is told. */
static void begin_anew(struct observer *observer) {
  if (!observer->root) return;
  folder_drop(observer->root);
  observer->wants_overflow = true;
  folder_add(observer, NULL, "", false);
}

/**
 * Lists see further than the events that are handled: this event about a name is older than what we, and the client, know of
 * the folder that has the name by now.
 */
static bool is_outrun(const struct folder *child) { return child && child->bound > position; }

static void handle_removed(struct observer *observer, struct folder *folder, const char *name, bool is_folder) {
  struct folder *child = is_folder ? folder_child(folder, name) : NULL;
  scan_has_seen(folder, name); // when it comes again, that is told
  observer_tell(observer, REMOVED, folder, name, is_folder, NULL);
  // One that outran this event is found again: the event that brought it is still queued.
  if (child) folder_drop(child);
}

static void handle_created(struct observer *observer, struct folder *folder, const char *name, bool is_folder) {
  if (scan_has_seen(folder, name)) return;
  // All that was told of it is taken back, to be told anew.
  if (is_folder && is_outrun(folder_child(folder, name))) handle_removed(observer, folder, name, true);
  observer_tell(observer, CREATED, folder, name, is_folder, NULL);
  if (is_folder && observer->is_recursive) folder_add(observer, folder, name, true);
}

/** For the root, what happens to itself; for others their parent tells. */
static void handle_self(struct observer *observer, struct folder *folder, uint32_t mask) {
  bool is_root = !folder->parent;
  if (is_root && mask & IN_UNMOUNT) observer_end(observer, "unmounted");
  else if (is_root && mask & IN_MOVE_SELF) observer_end(observer, "moved");
  else if (is_root && mask & (IN_DELETE_SELF | IN_IGNORED)) observer_end(observer, "removed");
  else if (mask & IN_IGNORED) folder_drop(folder);
  else if (is_root && mask & IN_ATTRIB) observer_tell(observer, ATTRIBUTES, folder, "", observer->is_folder, NULL);
  else if (is_root && mask & IN_MODIFY) observer_tell(observer, MODIFIED, folder, "", observer->is_folder, NULL);
}

/** The folder that an event at this position is about; NULL when it is history: the list of the folder came later. */
static struct folder *find(const struct observer *observer, const struct inotify_event *event, uint64_t event_position) {
  struct folder *folder = event ? folder_find(observer, event->wd) : NULL;
  return folder && event_position >= folder->listed ? folder : NULL;
}

static void handle_for(struct observer *observer, const struct inotify_event *event) {
  bool is_folder = event->mask & IN_ISDIR;
  if (event->mask & IN_Q_OVERFLOW) return begin_anew(observer);
  // The kernel makes one of equal events in a row, so a change of content may be newer than its place in the queue.
  bool is_structure = event->len && event->mask & (IN_CREATE | IN_MOVED_TO | IN_DELETE);
  struct folder *folder = is_structure ? find(observer, event, position) : folder_find(observer, event->wd);
  if (!folder) return;
  if (!event->len) handle_self(observer, folder, event->mask);
  else if (event->mask & (IN_CREATE | IN_MOVED_TO)) handle_created(observer, folder, event->name, is_folder);
  else if (event->mask & IN_DELETE) handle_removed(observer, folder, event->name, is_folder);
  else if (event->mask & IN_MODIFY) observer_tell(observer, MODIFIED, folder, event->name, is_folder, NULL);
  else if (event->mask & IN_ATTRIB) observer_tell(observer, ATTRIBUTES, folder, event->name, is_folder, NULL);
}

static void handle(const struct inotify_event *event) {
  for (struct list *node = observers.next; node != &observers; node = node->next) {
    handle_for(containing(node, struct observer, all), event);
  }
}

/** A folder whose content must be known as well as its name: a rename can be told when both are as they were at that moment. */
static void move_folder(struct observer *observer, struct folder *from, const char *old_name, struct folder *to, const char *name,
                        const char *old_path) {
  struct folder *moved = folder_child(from, old_name), *replaced = folder_child(to, name);
  if (!moved || is_outrun(moved) || is_outrun(replaced)) {
    handle_removed(observer, from, old_name, true);
    return handle_created(observer, to, name, true);
  }
  // SAFETY: a tree with a circle would never end. No file system has one, so we are wrong about it.
  if (folder_is_below(to, moved)) return begin_anew(observer);
  observer_tell(observer, RENAMED, to, name, true, old_path);
  if (replaced && replaced != moved) folder_drop(replaced);
  folder_move(moved, to, name);
}

static void handle_renamed(struct observer *observer, struct folder *from, const char *old_name, struct folder *to, const char *name,
                           bool is_folder) {
  char old_path[PATH_MAX];
  scan_has_seen(from, old_name);
  scan_has_seen(to, name);
  if (!folder_path(from, old_name, old_path)) old_path[0] = 0; // told when it was made, so the observer has failed
  if (is_folder && observer->is_recursive) move_folder(observer, from, old_name, to, name, old_path);
  else observer_tell(observer, RENAMED, to, name, is_folder, old_path);
}

static void handle_move(const struct inotify_event *from, const struct inotify_event *to) {
  bool is_folder = from->mask & IN_ISDIR;
  uint64_t to_position = to ? position + (size_t)((const char *)to - (const char *)from) : 0;
  for (struct list *node = observers.next; node != &observers; node = node->next) {
    struct observer *observer = containing(node, struct observer, all);
    struct folder *source_folder = find(observer, from, position), *target = find(observer, to, to_position);
    if (source_folder && target) handle_renamed(observer, source_folder, from->name, target, to->name, is_folder);
    else if (source_folder) handle_removed(observer, source_folder, from->name, is_folder);
    else if (target) handle_created(observer, target, to->name, is_folder);
  }
}
