#include "watch/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "bounds.h"
#include "files/entries.h"
#include "loop/descriptors.h"
#include "watch/inotify.h"

// A folder is watched first and listed then, so that no entry is missed: earlier ones are listed, later
// ones have an event, and those with both are reported once (scan_has_seen). No event is handled while folders wait for
// their listing, so listings and events stay in order.

enum {
  SLICE = 512,
  ENTER_COST = 16,
  ENTRIES_BUFFER = 16 * 1024,
  FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW
};

#define CHANGES (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK)

/** Hashes of names in a listing, kept until the events that were queued by then are handled. */
struct seen {
  struct list all; // of complete listings, in their order
  struct folder *folder;
  uint64_t until;
  size_t count, capacity;
  uint64_t names[];
};

static struct list queue = {&queue, &queue};
static struct folder *current; // being listed, through:
static int current_fd = -1;
static struct list seens = {&seens, &seens};
static size_t seen_total;

static void on_slice(struct task *);
static struct task slice = {{&slice.node, &slice.node}, on_slice};

static void add(struct folder *);
static void drop(struct folder *);
static void remember(struct folder *, const char *name);

static void (*when_listed)(void);

void scan_init(void (*listed_all)(void)) {
  static const struct folder_lister lister = {add, drop};
  folders_init(&lister);
  when_listed = listed_all;
}

static void add(struct folder *folder) {
  if (!list_is_empty(&folder->scan)) return;
  folder->observer->unscanned++;
  // New folders first: events wait for them.
  if (folder->is_new) list_append(queue.next, &folder->scan);
  else list_append(&queue, &folder->scan);
  task_queue(&slice);
}

bool scans_are_waiting(void) { return !list_is_empty(&queue); }

static void close_current(void) {
  close(current_fd);
  current_fd = -1;
  current = NULL;
}

static void forget_seen(struct folder *folder) {
  if (!folder->seen) return;
  seen_total -= folder->seen->capacity;
  list_remove(&folder->seen->all);
  free(folder->seen);
  folder->seen = NULL;
}

void scans_settle(void) {
  while (!list_is_empty(&seens)) {
    const struct seen *seen = containing(seens.next, struct seen, all);
    if (seen->until > inotify_position()) return;
    forget_seen(seen->folder);
  }
}

static void leave_queue(struct folder *folder) {
  if (folder == current) close_current();
  list_remove(&folder->scan);
  folder->observer->unscanned--;
  if (list_is_empty(&queue)) when_listed();
}

static void drop(struct folder *folder) {
  forget_seen(folder);
  if (!list_is_empty(&folder->scan)) leave_queue(folder);
}

static bool is_at(int fd, const struct folder *folder) {
  struct stat found;
  return fstat(fd, &found) == 0 && found.st_dev == folder->device && found.st_ino == folder->inode;
}

/**
 * Walks down from the root without following any link. -1 with errno: ESTALE when the root is not at its path any more,
 * ENOENT when the parent is another folder now.
 */
static int open_folder(const struct folder *folder) {
  const struct observer *observer = folder->observer;
  char path[PATH_MAX], *rest = NULL;
  int fd = open(observer->path, FOLDER_FLAGS);
  if (!folder->parent) return fd;
  if (fd < 0) return errno = ESTALE, -1;
  bool is_same = is_at(fd, observer->root), has_path = folder_path(folder->parent, "", path);
  for (char *part = has_path ? strtok_r(path, "/", &rest) : NULL; part && is_same && fd >= 0; part = strtok_r(NULL, "/", &rest)) {
    int next = openat(fd, part, FOLDER_FLAGS), error = errno;
    close(fd);
    fd = next;
    errno = error;
  }
  if (fd < 0) return -1;
  int error = !is_same ? ESTALE : !has_path ? ENAMETOOLONG : !is_at(fd, folder->parent) ? ENOENT : 0;
  int found = error ? -1 : openat(fd, folder->name, FOLDER_FLAGS);
  if (!error) error = errno;
  close(fd);
  return errno = error, found;
}

/** File systems of the kernel: endless, always changing, and without events. */
static bool is_kernel_view(int fd) {
  struct statfs kind;
  if (fstatfs(fd, &kind) < 0) return false;
  return kind.f_type == PROC_SUPER_MAGIC || kind.f_type == SYSFS_MAGIC || kind.f_type == CGROUP_SUPER_MAGIC ||
         kind.f_type == CGROUP2_SUPER_MAGIC;
}

/** inotify's number for an open folder: of this very folder, even when its path leads elsewhere now. */
static int watch_open_folder(int fd) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return inotify_add_watch(inotify_fd, link, CHANGES | IN_ONLYDIR);
}

static void fail(struct observer *observer, int error) {
  char message[128];
  if (error == ENOSPC) {
    observer_fail(observer, 0, "watch: the host allows no more inotify watches (fs.inotify.max_user_watches)");
  } else {
    snprintf(message, sizeof message, "watch: %s", strerror(error));
    observer_fail(observer, error, message);
  }
}

/** Handles a folder that could not be watched: whether that is an error depends on its place in the tree. */
static void missed(struct folder *folder, int error) {
  struct observer *observer = folder->observer;
  bool is_gone = error == ENOENT || error == ENOTDIR || error == ELOOP;
  leave_queue(folder);
  if (error == ESTALE) {
    observer_end(observer, "removed");
  } else if (!folder->parent) {
    if (is_gone && observer->is_started) observer_end(observer, "removed");
    else fail(observer, error);
  } else if (error == EACCES || error == EPERM) {
    folder_drop(folder);
  } else if (!is_gone) {
    fail(observer, error);
  }
  // A deleted folder stays in the tree: a queued event tells whether it was removed or moved.
}

/** Starts watching. True: its contents are to be listed, through current_fd. Otherwise it is done. */
static bool enter(struct folder *folder) {
  struct observer *observer = folder->observer;
  int number = -1;
  if (observer->is_folder) {
    struct stat found;
    int fd = open_folder(folder);
    if (fd < 0) return missed(folder, errno), false;
    current_fd = fd;
    current = folder;
    if (fstat(fd, &found) < 0) return missed(folder, errno), false;
    folder->device = found.st_dev;
    folder->inode = found.st_ino;
    folder->bound = inotify_queued();
    if (is_reserved_fd(fd)) return missed(folder, EMFILE), false;
    if (folder->parent && is_kernel_view(fd)) return folder_drop(folder), false;
    number = watch_open_folder(fd);
  } else {
    number = inotify_add_watch(inotify_fd, observer->path, CHANGES | IN_DONT_FOLLOW);
  }
  if (number < 0) return missed(folder, errno), false;
  struct folder *twin = folder_find(observer, number);
  if (twin != folder) {
    if (folder_is_below(folder, twin)) return folder_drop(folder), false; // mounted inside itself
    folder_number(folder, number);
    // It was moved here, and the event for it is still queued. (Or it is mounted twice: reported at one place.)
    if (twin) folder_drop(twin);
  }
  folder->listed = inotify_queued();
  if (!observer->is_recursive) leave_queue(folder);
  return observer->is_recursive;
}

static bool is_folder_entry(const struct entry *entry) {
  struct stat found;
  if (entry->type != DT_UNKNOWN) return entry->type == DT_DIR;
  return fstatat(current_fd, entry->name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode);
}

/** Reads up to one buffer of entries. 0: the end. */
static long list_some(struct folder *folder) {
  static uint64_t buffer[ENTRIES_BUFFER / sizeof(uint64_t)];
  struct observer *observer = folder->observer;
  long got = read_entries(current_fd, buffer, sizeof buffer), count = 0;
  for (long at = 0; at < got; count++) {
    const struct entry *entry = (const struct entry *)(void *)((char *)buffer + at);
    at += entry->length;
    if (is_dot(entry->name)) continue;
    bool is_folder = is_folder_entry(entry);
    if (folder->is_new) {
      folder_tell(folder, CREATED, entry->name, is_folder, NULL);
      remember(folder, entry->name);
    }
    if (is_folder && !folder_add(observer, folder, entry->name, folder->is_new)) return 0;
  }
  return got < 0 ? 0 : count;
}

static void listed(struct folder *folder) {
  if (folder->seen) {
    folder->seen->until = inotify_queued();
    list_append(&seens, &folder->seen->all);
  }
  leave_queue(folder);
}

static void on_slice(struct task *task) {
  for (long left = SLICE; left > 0 && !list_is_empty(&queue); left--) {
    struct folder *folder = current ? current : containing(queue.next, struct folder, scan);
    struct observer *observer = folder->observer;
    if (*observer->failure) {
      leave_queue(folder);
    } else if (!current && !enter(folder)) {
      left -= ENTER_COST;
    } else {
      long count = list_some(folder);
      left -= ENTER_COST + count;
      if (count == 0) listed(folder);
    }
    if (observer->unscanned == 0) observer_scanned(observer);
  }
  if (!list_is_empty(&queue)) task_queue(task);
}

static uint64_t hash(const char *name) {
  uint64_t sum = 0xcbf29ce484222325; // FNV-1a
  for (; *name; name++) sum = (sum ^ (uint8_t)*name) * 0x100000001b3;
  return sum;
}

static void remember(struct folder *folder, const char *name) {
  struct seen *seen = folder->seen;
  size_t capacity = seen ? seen->capacity : 0;
  if (!seen || seen->count == capacity) {
    size_t more = capacity ? capacity : 8;
    // Beyond the limit, or without memory, an entry may be reported twice.
    if (seen_total + more > WATCH_SEEN_MAX) return;
    struct seen *grown = realloc(seen, sizeof *seen + (capacity + more) * sizeof *seen->names);
    if (!grown) return;
    grown->count = seen ? grown->count : 0;
    grown->until = 0;
    grown->capacity = capacity + more;
    grown->folder = folder;
    list_init(&grown->all);
    seen_total += more;
    folder->seen = seen = grown;
  }
  seen->names[seen->count++] = hash(name);
}

bool scan_has_seen(struct folder *folder, const char *name) {
  struct seen *seen = folder->seen;
  if (!seen || inotify_position() >= seen->until) return false;
  uint64_t sum = hash(name);
  for (size_t i = 0; i < seen->count; i++) {
    if (seen->names[i] != sum) continue;
    seen->names[i] = seen->names[--seen->count];
    return true;
  }
  return false;
}
