#include "dispatch/shutdown.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/children.h"
#include "loop/loop.h"
#include "process/detached-record.h"
#include "process/process.h"
#include "process/shutdown-state.h"
#include "wire/activity.h"
#include "wire/conn.h"

enum { KILL_AGAIN_MS = 100, KILL_TRIES = 20, LAST_WORDS_MS = 2, LAST_WORDS_TRIES = 125 };

static bool is_empty;
static int kills, waits;
static struct timer grace, last_words;

static void on_grace(struct timer *);
static void on_none(void);
static void on_last_words(struct timer *);

void shutdown_begin(uint64_t grace_ms) {
  if (shutdown_is_running()) {
    if (timer_is_running(&grace) && now_ms() + grace_ms < grace.at_ms) timer_start(&grace, grace_ms);
    return;
  }
  shutdown_mark();
  timer_init(&grace, on_grace);
  timer_init(&last_words, on_last_words);
  // SAFETY: as PID 1, -1 is every process of this pid namespace but ourselves; never run outside of one (main.c).
  kill(-1, SIGTERM);
  kill(-1, SIGCONT); // a stopped process could not react
  timer_start(&grace, grace_ms);
  children_when_none(on_none);
}

static void on_grace(struct timer *timer) {
  process_expect_kill();
  kill(-1, SIGKILL);
  // A process in an uninterruptible wait may never exit; the runtime removes it with the namespace.
  if (++kills > KILL_TRIES) exit(0);
  timer_start(timer, KILL_AGAIN_MS);
}

static void on_none(void) {
  if (is_empty) return;
  is_empty = true;
  timer_stop(&grace);
  timer_start(&last_words, 0);
}

static void on_last_words(struct timer *timer) {
  // Sends the last output and the exit reports first, unless the peers do not read.
  bool is_told = activity_count.processes == 0 && detached_is_told() && conns_are_flushed();
  if (!is_told && ++waits < LAST_WORDS_TRIES) return timer_start(timer, LAST_WORDS_MS);
  int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root >= 0) syncfs(root);
  // Last: the engine treats the end of this connection as the end of svc-init.
  conns_end_all();
  exit(0);
}
