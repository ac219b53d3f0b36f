#include "wire/activity.h"

#include "bounds.h"
#include "loop/loop.h"
#include "wire/cbor-write.h"
#include "wire/control-link.h"

struct activity_count activity_count;

// A first process should not wait for an engine that reads about it.
enum { STATUS_DELAY_MS = 10 };

static uint64_t sequence, started_ns, initialised_ns, last_sent_ms;
static struct timer pause;

static void on_pause(struct timer *timer) {
  (void)timer;
  activity_announce();
}

void activity_init(void) {
  started_ns = unix_ns();
  timer_init(&pause, on_pause);
}

uint64_t activity(void) {
  if (!timer_is_running(&pause)) {
    uint64_t since = now_ms() - last_sent_ms;
    timer_start(&pause, since < STATUS_INTERVAL_MS ? STATUS_INTERVAL_MS - since : STATUS_DELAY_MS);
  }
  return ++sequence;
}

void activity_announce(void) {
  struct writer payload = writer_new();
  last_sent_ms = now_ms();
  write_map(&payload, 4);
  write_uint_pair(&payload, "activity_seq", sequence);
  write_uint_pair(&payload, "active_processes", activity_count.processes);
  write_uint_pair(&payload, "active_files", activity_count.files);
  write_uint_pair(&payload, "active_streams", activity_count.streams);
  control_notify("svc.status", &payload);
}

void activity_write_times(struct writer *payload) {
  uint64_t now = unix_ns();
  if (!initialised_ns) initialised_ns = now;
  write_uint_pair(payload, "boot_time_ns", started_ns);
  write_uint_pair(payload, "init_time_ns", initialised_ns - started_ns);
  write_uint_pair(payload, "ready_time_ns", now - started_ns);
}
