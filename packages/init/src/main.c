#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"
#include "dispatch/channel.h"
#include "dispatch/control.h"
#include "dispatch/serve-files.h"
#include "dispatch/shutdown.h"
#include "loop/children.h"
#include "loop/descriptors.h"
#include "loop/loop.h"
#include "privileges/privileges.h"
#include "process/spawn-stack.h"
#include "process/spawn.h"
#include "wire/activity.h"
#include "wire/conn.h"

static int run_as_init(void);
static bool read_profile(enum profile *);
static bool show_cpus(void);
static void on_stop(void) { shutdown_begin(SHUTDOWN_GRACE_MS); }

int main(int count, char **arguments) {
  if (count == 2 && !strcmp(arguments[1], "--version")) return puts("svc-init " SVC_VERSION) < 0;
  if (count >= 3 && !strcmp(arguments[1], "serve-files")) return serve_files(count - 2, arguments + 2);
  if (count == 1 && getpid() == 1) return run_as_init();
  fputs("usage: svc-init (as PID 1 of a sandbox) | svc-init serve-files DIR [UID GID] | svc-init --version\n", stderr);
  return 2;
}

static int run_as_init(void) {
  enum profile profile;
  // SAFETY: a descriptor that the runtime left open (a folder of the host, say) must not reach a process of the guest.
  close_inherited(3);
  activity_init();
  loop_init();
  children_init(on_stop);
  spawn_init();
  if (!read_profile(&profile)) return fputs("svc-init: SVC_PROFILE must be default, restricted or none\n", stderr), 1;
  if (!spawn_stack_init()) return fputs("svc-init: SVC_SPAWN must be fork or shared\n", stderr), 1;
  if (!show_cpus()) return fputs("svc-init: SVC_CPUS must be a number of CPUs that are there\n", stderr), 1;
  if (!privileges_init(profile)) return perror("svc-init: cannot lower privileges"), 1;
  if (chdir("/") < 0 || !dial_init(&control_line, &channel_line)) {
    return fputs("svc-init: SVC_TOKEN must be 64 hex digits and SVC_SOCKET an absolute path\n", stderr), 1;
  }
  for (;;) loop_turn(conns_settle);
}

static bool read_profile(enum profile *profile) {
  const char *name = getenv("SVC_PROFILE");
  *profile = PROFILE_DEFAULT;
  if (!name || !strcmp(name, "default")) return true;
  if (!strcmp(name, "restricted")) return *profile = PROFILE_RESTRICTED, true;
  if (!strcmp(name, "none")) return *profile = PROFILE_NONE, true;
  return false;
}

/** Where the kernel has more CPUs than were requested, programs that count usable CPUs get the requested number. */
static bool show_cpus(void) {
  const char *text = getenv("SVC_CPUS");
  cpu_set_t allowed, shown;
  if (!text) return true;
  long left = strtol(text, NULL, 10);
  if (left < 1 || sched_getaffinity(0, sizeof allowed, &allowed) < 0) return false;
  CPU_ZERO(&shown);
  for (int cpu = 0; cpu < CPU_SETSIZE && left > 0; cpu++) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &shown);
    left--;
  }
  return sched_setaffinity(0, sizeof shown, &shown) == 0;
}
