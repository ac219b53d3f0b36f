#include "process/tree-kill.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"
#include "loop/loop.h"

// Far above any memory, so that the limit does not matter to programs that read it; whole pages.
static const uint64_t FIRST_MARK = 1ull << 62;
enum { MARK_STEP = 4096 };

struct hunt {
  struct list node;
  uint64_t mark;
  unsigned passes;
  bool is_in_pass, has_found; // `is_in_pass`: requested before this pass over /proc began
};

static struct list hunts = {&hunts, &hunts};
static DIR *folder; // open while a pass is under way
static struct task slice;
static struct timer again;

static void on_slice(struct task *);
static void on_again(struct timer *);
static void begin_pass(void);

uint64_t tree_mark_new(uint64_t highest) {
  static uint64_t last = FIRST_MARK;
  return last + MARK_STEP <= highest ? last += MARK_STEP : 0;
}

void tree_kill(uint64_t mark) {
  struct hunt *hunt = mark ? calloc(1, sizeof *hunt) : NULL;
  if (!hunt) return; // without memory only the group is killed
  hunt->mark = mark;
  bool is_first = list_is_empty(&hunts);
  list_append(&hunts, &hunt->node);
  if (!is_first) return;
  task_init(&slice, on_slice);
  timer_init(&again, on_again);
  begin_pass();
}

static struct hunt *hunt_at(struct list *node) { return containing(node, struct hunt, node); }

static void begin_pass(void) {
  folder = opendir("/proc");
  for (struct list *node = hunts.next; node != &hunts; node = node->next)
    hunt_at(node)->is_in_pass = true, hunt_at(node)->has_found = false;
  task_queue(&slice);
}

static void on_again(struct timer *timer) { (void)timer, begin_pass(); }

/** The end of a pass: trees without a process in it are done. */
static void end_pass(void) {
  if (folder) closedir(folder);
  folder = NULL;
  for (struct list *node = hunts.next, *next; node != &hunts; node = next) {
    struct hunt *hunt = hunt_at(node);
    next = node->next;
    if (!hunt->is_in_pass || (hunt->has_found && ++hunt->passes < TREE_PASSES_MAX)) continue;
    list_remove(node);
    free(hunt);
  }
  // Killed processes take a moment to exit.
  if (!list_is_empty(&hunts)) timer_start(&again, TREE_PASS_MS);
}

/** The mark of a process; 0 when it has none, is a zombie or is gone. */
static uint64_t mark_of(const char *pid) {
  static const char name[] = "Max resident set";
  char path[64], text[2048];
  snprintf(path, sizeof path, "/proc/%.16s/limits", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (got <= 0) return 0;
  text[got] = 0;
  char *line = strstr(text, name), *end;
  if (!line) return 0;
  strtoull(line + sizeof name - 1, &end, 10);
  return strtoull(end, NULL, 10);
}

static void on_slice(struct task *task) {
  for (int i = 0; i < TREE_ENTRIES_PER_TURN; i++) {
    struct dirent *entry = folder ? readdir(folder) : NULL;
    if (!entry) return end_pass();
    if (!isdigit((unsigned char)entry->d_name[0]) || !strcmp(entry->d_name, "1")) continue;
    uint64_t mark = mark_of(entry->d_name);
    for (struct list *node = hunts.next; mark && node != &hunts; node = node->next) {
      if (hunt_at(node)->mark != mark) continue;
      // SAFETY: the pid was this process's own a moment ago, and pids are reused only after all others.
      hunt_at(node)->has_found |= kill((pid_t)atoi(entry->d_name), SIGKILL) == 0;
    }
  }
  task_queue(task);
}
