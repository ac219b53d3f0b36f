#include "privileges/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "privileges/raw.h"

static enum profile current = PROFILE_NONE;

static bool forgo_priorities(void);
static void drop_bounding(unsigned long long keep);
static long set_capabilities(unsigned long long mask);

bool privileges_init(enum profile profile) {
  current = profile;
  // SAFETY: non-dumpable hides our memory (the token) from processes of the same user; no_new_privs must be set before
  // the filter, and both before any process of the guest runs.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return false;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return false;
  if (!forgo_priorities()) return false;
  return filter_load(profile);
}

/**
 * SAFETY: a thread of a real-time class would escape the sandbox's CPU quota, and the engine may have been started with the
 * right to such classes. gVisor's kernel has none of them, and refuses every change.
 */
static bool forgo_priorities(void) {
  const __rlimit_resource_t resources[] = {RLIMIT_NICE, RLIMIT_RTPRIO};
  const struct rlimit none = {0, 0};
  for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
    struct rlimit given;
    if (getrlimit(resources[i], &given) < 0) return false;
    if (given.rlim_max > 0 && setrlimit(resources[i], &none) < 0) return false;
  }
  return true;
}

void privileges_before_user(void) {
  if (current == PROFILE_RESTRICTED) drop_bounding(0);
}

long privileges_of_user(uid_t uid) {
  if (current != PROFILE_RESTRICTED && uid == 0) return 0;
  // SAFETY: with no_new_privs an exec cannot gain a capability that is not permitted now, so this holds even for uid 0 and even
  // where the bounding set could not be lowered (that needs CAP_SETPCAP).
  RAW(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0);
  return set_capabilities(0);
}

bool capabilities_keep(unsigned long long mask) {
  drop_bounding(mask);
  return set_capabilities(mask) == 0;
}

static void drop_bounding(unsigned long long keep) {
  for (unsigned long cap = 0; cap < 64; cap++) {
    if (keep >> cap & 1) continue;
    if (RAW(prctl, PR_CAPBSET_DROP, cap, 0, 0) == -EINVAL) return; // beyond this kernel's last one
  }
}

static long set_capabilities(unsigned long long mask) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {
      {.effective = (unsigned)mask, .permitted = (unsigned)mask},
      {.effective = (unsigned)(mask >> 32), .permitted = (unsigned)(mask >> 32)},
  };
  return RAW(capset, &header, data, 0, 0);
}
