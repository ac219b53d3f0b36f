#include "confine/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/** SAFETY: an exec as root regains everything in the bounding set, so the bounding set has to be small. */
int keep_capabilities(uint64_t mask, struct failure *failure) {
  for (unsigned long capability = 0; capability < 64; capability++) {
    if ((mask >> capability & 1) == 0 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 && errno != EINVAL) {
      return fail(failure, "drop a capability");
    }
  }
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {
      {.effective = (uint32_t)mask, .permitted = (uint32_t)mask},
      {.effective = (uint32_t)(mask >> 32), .permitted = (uint32_t)(mask >> 32)},
  };
  return syscall(SYS_capset, &header, sets) == 0 ? 0 : fail(failure, "give capabilities up");
}
