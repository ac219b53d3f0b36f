// Build-time program: writes the BPF of both profiles as a C header. The rules are in filter-rules.h.
// It runs on the build machine, and generates for the target architecture.

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privileges/filter-rules.h"

// A filter has two parts: a search among ranges of numbers, which decides most calls, and behind it libseccomp's program for the few
// whose arguments matter. gVisor runs a filter once for every number at every fork, with a note per instruction, so length costs time there.

enum { PROGRAM_MAX = 4096, NUMBERS_MAX = 1024 };

enum verdict { REFUSED, ALLOWED, ABSENT, ASKED }; // ASKED: libseccomp's program decides

/** Consecutive numbers with one verdict, up to where the next range begins. */
struct range {
  uint32_t first;
  enum verdict verdict;
};

/** The target architecture, in libseccomp's terms. */
static uint32_t target;
static enum verdict verdicts[NUMBERS_MAX];

static void emit(const char *name, bool is_restricted);
static int number_of(const char *syscall_name);
static void settle(const char *syscall_name, enum verdict);
static void allow(scmp_filter_ctx filter, const char *syscall_name, unsigned count, const struct scmp_arg_cmp *args);
static void add_rules(scmp_filter_ctx filter, bool is_restricted);
static size_t write_search(struct sock_filter *out);
static size_t write_node(struct sock_filter *out, const struct range *ranges, size_t count, size_t after);
static size_t write_refused_ioctls(struct sock_filter *out);
static uint32_t newest_known(void);
static uint32_t audit_number(void);

int main(int count, char **words) {
  target = count == 2 ? seccomp_arch_resolve_name(words[1]) : 0;
  if (!target) return fputs("filter-generate: say for which architecture: x86_64 or aarch64\n", stderr), 2;
  puts("// Made by filter-generate. Include <linux/filter.h> first.");
  emit("default_filter", false);
  emit("restricted_filter", true);
  return 0;
}

static void check(int result, const char *what) {
  if (result >= 0) return;
  fprintf(stderr, "filter-generate: %s: error %d\n", what, -result);
  exit(1);
}

static void emit(const char *name, bool is_restricted) {
  struct sock_filter program[PROGRAM_MAX];
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (!filter) exit(1);
  if (target != seccomp_arch_native()) {
    check(seccomp_arch_add(filter, target), "add the target");
    check(seccomp_arch_remove(filter, seccomp_arch_native()), "remove this machine");
  }
  check(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "bad architecture");
  check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree");
  memset(verdicts, 0, sizeof verdicts);
  add_rules(filter, is_restricted);
  FILE *file = tmpfile();
  if (!file) exit(1);
  check(seccomp_export_bpf(filter, fileno(file)), "export");
  size_t count = write_search(program);
  count += write_refused_ioctls(program + count);
  lseek(fileno(file), 0, SEEK_SET);
  ssize_t got = read(fileno(file), program + count, sizeof program - count * sizeof *program);
  if (got <= 0 || (size_t)got % sizeof *program || (size_t)got == sizeof program - count * sizeof *program) exit(1);
  count += (size_t)got / sizeof *program;
  printf("static const struct sock_filter %s[] = {\n", name);
  for (size_t i = 0; i < count; i++) {
    printf("    {0x%02x, %u, %u, 0x%08x},\n", program[i].code, program[i].jt, program[i].jf, program[i].k);
  }
  puts("};");
  fclose(file);
  seccomp_release(filter);
}

static void add_rules(scmp_filter_ctx filter, bool is_restricted) {
  for (size_t i = 0; i < sizeof allowed_always / sizeof *allowed_always; i++) allow(filter, allowed_always[i], 0, NULL);
  for (size_t i = 0; !is_restricted && i < sizeof allowed_by_default / sizeof *allowed_by_default; i++) {
    allow(filter, allowed_by_default[i], 0, NULL);
  }
  allow(filter, "clone", 1, (struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS, 0)});
  allow(filter, "unshare", 1, (struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS | TIME_NAMESPACE, 0)});
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
    settle(absent[i], ABSENT);
  }
  const int families[] = {AF_UNIX, AF_INET, AF_INET6};
  for (size_t i = 0; i < 3; i++) {
    allow(filter, "socket", 1, (struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, (scmp_datum_t)families[i])});
  }
  // As on a kernel without audit: Debian's useradd, sudo and PAM go on then, and give up on EPERM.
  const struct scmp_arg_cmp audit[] = {SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, AF_NETLINK),
                                       SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffff, NETLINK_AUDIT)};
  int socket_number = seccomp_syscall_resolve_name("socket");
  check(seccomp_rule_add_exact_array(filter, SCMP_ACT_ERRNO(EPROTONOSUPPORT), socket_number, 2, audit), "audit");
  for (size_t i = 0; i < sizeof allowed_schedulers / sizeof *allowed_schedulers; i++) {
    const scmp_datum_t bits = 0xffffffff & ~(scmp_datum_t)RESET_ON_FORK;
    allow(filter, "sched_setscheduler", 1, (struct scmp_arg_cmp[]){SCMP_A1(SCMP_CMP_MASKED_EQ, bits, allowed_schedulers[i])});
  }
  allow(filter, "socketpair", 1, (struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, AF_UNIX)});
  for (size_t i = 0; !is_restricted && i < sizeof allowed_personalities / sizeof *allowed_personalities; i++) {
    allow(filter, "personality", 1, (struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, allowed_personalities[i])});
  }
  if (!is_restricted) { // interface and route listings; no other netlink family
    allow(filter, "socket", 2,
          (struct scmp_arg_cmp[]){SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, AF_NETLINK), SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffff, 0)});
    return;
  }
  const unsigned kinds[] = {0, S_IFREG, S_IFIFO, S_IFSOCK}; // no devices
  for (size_t i = 0; i < 4; i++) {
    allow(filter, "mknod", 1, (struct scmp_arg_cmp[]){SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, kinds[i])});
    allow(filter, "mknodat", 1, (struct scmp_arg_cmp[]){SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, kinds[i])});
  }
}

static void settle(const char *syscall_name, enum verdict verdict) {
  int number = number_of(syscall_name);
  check(number < NUMBERS_MAX ? 0 : -ERANGE, syscall_name);
  if (number >= 0) verdicts[number] = verdict; // else: not on the target
}

static void allow(scmp_filter_ctx filter, const char *syscall_name, unsigned count, const struct scmp_arg_cmp *args) {
  bool is_asked = count > 0 || !strcmp(syscall_name, "ioctl"); // some values are refused: write_refused_ioctls
  settle(syscall_name, is_asked ? ASKED : ALLOWED);
  if (!is_asked || number_of(syscall_name) < 0) return;
  // libseccomp takes this machine's numbers, and pseudo numbers for calls that it lacks, and translates them for the target.
  int number = seccomp_syscall_resolve_name(syscall_name);
  check(seccomp_rule_add_exact_array(filter, SCMP_ACT_ALLOW, number, count, args), syscall_name);
}

/** Number on the target; negative when it has no such call. */
static int number_of(const char *syscall_name) { return seccomp_syscall_resolve_name_arch(target, syscall_name); }

/** Decides by number; calls that depend on arguments continue behind this code, with the number loaded. */
static size_t write_search(struct sock_filter *out) {
  struct range ranges[NUMBERS_MAX];
  size_t count = 0, at = 0;
  const uint32_t enosys = SECCOMP_RET_ERRNO | ENOSYS, newest = newest_known();
  for (uint32_t number = 0; number <= newest; number++) {
    if (number && verdicts[number] == verdicts[number - 1]) continue;
    ranges[count++] = (struct range){number, verdicts[number]};
  }
  // SAFETY: checked before any number. Programs of another architecture have other calls at the same numbers.
  out[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  out[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, audit_number(), 1, 0);
  out[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, enosys);
  out[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  out[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, newest, 0, 1);
  out[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, enosys);
  return at + write_node(out + at, ranges, count, 0);
}

static size_t nodes_of(size_t ranges) { return 2 * ranges - 1; }

/** A binary search among `count` ranges, followed by `after` instructions of the whole search. Returns its length. */
static size_t write_node(struct sock_filter *out, const struct range *ranges, size_t count, size_t after) {
  const uint32_t returned[] = {
      [REFUSED] = SECCOMP_RET_ERRNO | EPERM,
      [ALLOWED] = SECCOMP_RET_ALLOW,
      [ABSENT] = SECCOMP_RET_ERRNO | ENOSYS,
  };
  if (count == 1) {
    bool is_asked = ranges->verdict == ASKED;
    *out = is_asked ? (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)after)
                    : (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, returned[ranges->verdict]);
    return 1;
  }
  size_t left = count / 2, right = count - left;
  check(nodes_of(left) <= UINT8_MAX ? 0 : -ERANGE, "jump over half of the ranges");
  *out = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ranges[left].first, (uint8_t)nodes_of(left), 0);
  write_node(out + 1, ranges, left, after + nodes_of(right));
  write_node(out + 1 + nodes_of(left), ranges + left, right, after);
  return nodes_of(count);
}

/** Rules that libseccomp cannot express: refused values of one argument, where all others are allowed. */
static size_t write_refused_ioctls(struct sock_filter *out) {
  const unsigned count = sizeof refused_ioctls / sizeof *refused_ioctls;
  // Only the low half of the argument: the kernel ignores the rest, and a filter that compared all of it could be
  // bypassed by setting a high bit.
  const uint32_t request = offsetof(struct seccomp_data, args[1]);
  size_t at = 0;
  out[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number_of("ioctl"), 0, (uint8_t)(2 + count));
  out[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, request);
  for (unsigned i = 0; i < count; i++) {
    uint8_t to_refusal = (uint8_t)(count - 1 - i), past = i + 1 == count;
    out[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused_ioctls[i], to_refusal, past);
  }
  out[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  return at;
}

static uint32_t newest_known(void) {
  int newest = 0;
  for (size_t i = 0; i < sizeof allowed_always / sizeof *allowed_always; i++) {
    int number = number_of(allowed_always[i]);
    if (number > newest) newest = number;
  }
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    int number = number_of(refused[i]);
    if (number > newest) newest = number;
  }
  check(newest < NUMBERS_MAX ? 0 : -ERANGE, "newest call");
  return (uint32_t)newest;
}

/** libseccomp's constants for these architectures are the kernel's own, of linux/audit.h. */
static uint32_t audit_number(void) {
  check(target == SCMP_ARCH_X86_64 || target == SCMP_ARCH_AARCH64 ? 0 : -EINVAL, "architecture");
  return target;
}
