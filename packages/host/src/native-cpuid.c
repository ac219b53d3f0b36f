#include "native-cpuid.h"

#ifdef __x86_64__

#include <asm/prctl.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS_EQUAL_SKIP(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))

int keep_cpuid_native(struct failure *failure) {
  // What the kernel says where the CPU cannot do it. The calls of 32-bit programs have other numbers; gVisor makes none.
  struct sock_filter steps[] = {
      LOAD(nr),
      UNLESS_EQUAL_SKIP(SYS_arch_prctl, 3),
      LOAD(args[0]),
      UNLESS_EQUAL_SKIP(ARCH_SET_CPUID, 1),
      ANSWER(SECCOMP_RET_ERRNO | ENODEV),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0) return 0;
  return fail(failure, "keep CPUID native");
}

#else

int keep_cpuid_native(struct failure *failure) {
  (void)failure;
  return 0;
}

#endif
