#include "wire/activity.h"

#include <errno.h>
#include <signal.h>

#include "bounds.h"
#include "loop/loop.h"
#include "wire/cbor-write.h"
#include "wire/control-link.h"

struct activity_count activity_count;

// A first process should not wait for an engine that reads about it.
enum { STATUS_DELAY_MS = 10 };

static uint64_t sequence, started_ns, initialised_ns, last_sent_ms;
static bool reported_alone;
static struct timer next_status;

static void on_time(struct timer *timer) {
  (void)timer;
  activity_announce();
}

void activity_init(void) {
  started_ns = unix_ns();
  timer_init(&next_status, on_time);
}

uint64_t activity(void) {
  // An engine that has read that no process runs is about to let the sandbox rest.
  bool has_first_process = reported_alone && activity_count.processes > 0;
  if (has_first_process || !timer_is_running(&next_status)) {
    uint64_t since = now_ms() - last_sent_ms;
    timer_start(&next_status, since < STATUS_INTERVAL_MS && !has_first_process ? STATUS_INTERVAL_MS - since : STATUS_DELAY_MS);
    reported_alone = reported_alone && !has_first_process;
  }
  return ++sequence;
}

// PID 1 may signal every other, so there is none when it cannot.
bool is_alone(void) { return kill(-1, 0) < 0 && errno == ESRCH; }

void activity_announce(void) {
  struct writer payload = writer_new();
  last_sent_ms = now_ms();
  write_map(&payload, 5);
  write_uint_pair(&payload, "activity_seq", sequence);
  write_uint_pair(&payload, "active_processes", activity_count.processes);
  write_uint_pair(&payload, "active_files", activity_count.files);
  write_uint_pair(&payload, "active_streams", activity_count.streams);
  reported_alone = activity_count.processes == 0 && is_alone();
  write_bool_pair(&payload, "alone", reported_alone);
  control_notify("svc.status", &payload);
}

void activity_write_times(struct writer *payload) {
  uint64_t now = unix_ns();
  if (!initialised_ns) initialised_ns = now;
  write_uint_pair(payload, "boot_time_ns", started_ns);
  write_uint_pair(payload, "init_time_ns", initialised_ns - started_ns);
  write_uint_pair(payload, "ready_time_ns", now - started_ns);
}
