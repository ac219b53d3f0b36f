#include "privileges.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Changing fsuid from 0 clears the file-system capabilities in the effective set; this restores them. */
static int raise_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) < 0) return -1;
  for (int index = 0; index < _LINUX_CAPABILITY_U32S_3; index++) sets[index].effective = sets[index].permitted;
  return (int)syscall(SYS_capset, &header, sets);
}

int act_as(uint32_t id, struct failure *failure) { return act_as_owner(id, id, failure); }

int act_as_owner(uint32_t uid, uint32_t gid, struct failure *failure) {
  // SAFETY: setfsuid and setfsgid report no errors; they fail only for unmapped ids, and the caller has checked those.
  setfsgid(gid);
  setfsuid(uid);
  if (raise_capabilities() == 0) return 0;
  fail(failure, "keep capabilities");
  act_as_root();
  return -1;
}

void act_as_root(void) {
  setfsuid(0);
  setfsgid(0);
}

int own_namespaces_as(uint32_t id, struct failure *failure) {
  // The system call, because the C library's function changes every thread. The real and the saved id keep the permission to return.
  if (syscall(SYS_setresuid, -1, id, -1) < 0) return fail(failure, "become the owner of a namespace");
  if (raise_capabilities() == 0) return 0;
  fail(failure, "keep capabilities");
  own_namespaces_as_root();
  return -1;
}

void own_namespaces_as_root(void) {
  // SAFETY: a thread that stayed another user would make the files of the next call as that user; it is permitted to return.
  if (syscall(SYS_setresuid, -1, 0, -1) < 0) abort();
}
