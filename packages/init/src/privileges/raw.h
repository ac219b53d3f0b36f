#ifndef SVC_RAW_H
#define SVC_RAW_H

#include <sys/syscall.h>

/**
 * A system call with the kernel's return value: below 0 is a negated error number. errno is left alone, so a process that shares its
 * memory with another may use it.
 */
static inline long raw_call(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = 0; // some calls require 0 as the fifth
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = 0; // some calls require 0 as the fifth
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#else
#error "how this processor calls its kernel is not known here"
#endif
}

#define RAW(name, a, b, c, d) raw_call(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d))

#endif
