#include "confine/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if defined __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "the filter is not written for this architecture"
#endif

// clang-format off: lists, as wide as they fit.

/** Calls of tar, zstd, Node, skopeo (a Go program) and qemu-img. No ptrace, mounts, namespaces, keys, bpf, io_uring or handles. */
static const uint16_t allowed[] = {
    SYS_brk,
    SYS_capget,
    SYS_chdir,
    SYS_clock_getres,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_close,
    SYS_close_range,
    SYS_copy_file_range,
    SYS_dup,
    SYS_dup3,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_eventfd2,
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_fadvise64,
    SYS_fallocate,
    SYS_fchdir,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_fcntl,
    SYS_fdatasync,
    SYS_fgetxattr,
    SYS_flistxattr,
    SYS_flock,
    SYS_fremovexattr,
    SYS_fsetxattr,
    SYS_fstat,
    SYS_fstatfs,
    SYS_fsync,
    SYS_ftruncate,
    SYS_futex,
    SYS_getcpu,
    SYS_getcwd,
    SYS_getdents64,
    SYS_getegid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getgroups,
    SYS_getpgid,
    SYS_getpid,
    SYS_getppid,
    SYS_getrandom,
    SYS_getresgid,
    SYS_getresuid,
    SYS_getrlimit,
    SYS_getrusage,
    SYS_getsid,
    SYS_gettid,
    SYS_gettimeofday,
    SYS_getuid,
    SYS_getxattr,
    SYS_kill,
    SYS_lgetxattr,
    SYS_linkat,
    SYS_listxattr,
    SYS_llistxattr,
    SYS_lremovexattr,
    SYS_lseek,
    SYS_lsetxattr,
    SYS_madvise,
    SYS_mincore,
    SYS_mkdirat,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_msync,
    SYS_munmap,
    SYS_nanosleep,
    SYS_newfstatat,
    SYS_openat,
    SYS_pipe2,
    SYS_ppoll,
    SYS_pread64,
    SYS_preadv,
    SYS_prlimit64,
    SYS_pselect6,
    SYS_pwrite64,
    SYS_pwritev,
    SYS_read,
    SYS_readahead,
    SYS_readlinkat,
    SYS_readv,
    SYS_removexattr,
    SYS_renameat,
    SYS_renameat2,
    SYS_restart_syscall,
    SYS_rseq,
    SYS_rt_sigaction,
    SYS_rt_sigpending,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_yield,
    SYS_sendfile,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_setitimer,
    SYS_setrlimit,
    SYS_setxattr,
    SYS_sigaltstack,
    SYS_signalfd4,
    SYS_splice,
    SYS_statfs,
    SYS_statx,
    SYS_symlinkat,
    SYS_sync_file_range,
    SYS_sysinfo,
    SYS_tgkill,
    SYS_timer_create,
    SYS_timer_delete,
    SYS_timer_settime,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_times,
    SYS_truncate,
    SYS_umask,
    SYS_uname,
    SYS_unlinkat,
    SYS_utimensat,
    SYS_wait4,
    SYS_waitid,
    SYS_write,
    SYS_writev,
#ifdef __x86_64__ // older names of the above
    SYS_access,
    SYS_arch_prctl,
    SYS_chmod,
    SYS_chown,
    SYS_creat,
    SYS_dup2,
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_eventfd,
    SYS_futimesat,
    SYS_getdents,
    SYS_getpgrp,
    SYS_lchown,
    SYS_link,
    SYS_lstat,
    SYS_mkdir,
    SYS_open,
    SYS_pipe,
    SYS_poll,
    SYS_readlink,
    SYS_rename,
    SYS_rmdir,
    SYS_select,
    SYS_stat,
    SYS_symlink,
    SYS_time,
    SYS_unlink,
    SYS_utime,
    SYS_utimes,
#endif
};

/** On sockets of the families below. */
static const uint16_t network_calls[] = {
    SYS_connect, SYS_getpeername, SYS_getsockname, SYS_getsockopt, SYS_recvfrom,   SYS_recvmmsg,
    SYS_recvmsg, SYS_sendmmsg,    SYS_sendmsg,     SYS_sendto,     SYS_setsockopt, SYS_shutdown,
};

/** For a program that takes connections and changes its own user. */
static const uint16_t server_calls[] = {SYS_accept4, SYS_listen, SYS_setgid, SYS_setgroups, SYS_setuid};
// clang-format on

static const uint32_t families[] = {AF_INET, AF_INET6};

enum {
  ALLOW = SECCOMP_RET_ALLOW,
  ABSENT = SECCOMP_RET_ERRNO | ENOSYS,
  NO_TERMINAL = SECCOMP_RET_ERRNO | ENOTTY,
  NAMESPACE_FLAGS = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
  MAX_STEPS = 512,
};

struct program {
  struct sock_filter steps[MAX_STEPS];
  unsigned short count;
};

static void add(struct program *program, struct sock_filter step) {
  if (program->count < MAX_STEPS) program->steps[program->count++] = step;
}

static void load(struct program *program, size_t offset) {
  add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct program *program, uint32_t outcome) {
  add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, outcome));
}

/** Runs the next `steps` only when the loaded value is equal. */
static void only_if(struct program *program, uint32_t value, uint8_t steps) {
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, steps));
}

static void mask(struct program *program, uint32_t bits) {
  add(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
}

static void allow_all(struct program *program, const uint16_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    only_if(program, numbers[i], 1);
    answer(program, ALLOW);
  }
}

/** Only the low halves of arguments: the kernel ignores the rest of these. */
static size_t argument(unsigned index) { return offsetof(struct seccomp_data, args) + index * sizeof(uint64_t); }

/** Regular files, and no device but 0/0, which is a whiteout and cannot be opened. */
static void allow_nodes(struct program *program, uint32_t number, unsigned mode_at) {
  const uint32_t plain[] = {0, S_IFREG};
  only_if(program, number, 11);
  load(program, argument(mode_at));
  mask(program, S_IFMT);
  for (size_t i = 0; i < 2; i++) {
    only_if(program, plain[i], 1);
    answer(program, ALLOW);
  }
  only_if(program, S_IFCHR, 3);
  load(program, argument(mode_at + 1));
  only_if(program, 0, 1);
  answer(program, ALLOW);
  answer(program, ABSENT);
}

static void allow_threads(struct program *program) {
  only_if(program, SYS_clone, 5);
  load(program, argument(0));
  mask(program, NAMESPACE_FLAGS);
  only_if(program, 0, 1);
  answer(program, ALLOW);
  answer(program, ABSENT);
}

static void allow_sockets(struct program *program) {
  const uint8_t count = sizeof families / sizeof *families;
  only_if(program, SYS_socket, (uint8_t)(2 + 2 * count));
  load(program, argument(0));
  for (size_t i = 0; i < count; i++) {
    only_if(program, families[i], 1);
    answer(program, ALLOW);
  }
  answer(program, ABSENT);
}

/** FIONBIO, which makes a socket non-blocking, is the only request. */
static void allow_non_blocking(struct program *program) {
  only_if(program, SYS_ioctl, 4);
  load(program, argument(1));
  only_if(program, FIONBIO, 1);
  answer(program, ALLOW);
  answer(program, NO_TERMINAL);
}

struct abilities {
  bool has_network;
  bool is_server;
  /** SAFETY: not for a program with transparent sockets: one of those could bind any address as its own. */
  bool chooses_address;
};

static int load_filter(struct abilities may, struct failure *failure) {
  struct program program = {.count = 0};
  load(&program, offsetof(struct seccomp_data, arch));
  only_if(&program, NATIVE, 1);
  add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
  answer(&program, SECCOMP_RET_KILL_PROCESS);
  load(&program, offsetof(struct seccomp_data, nr));
  allow_all(&program, allowed, sizeof allowed / sizeof *allowed);
  if (may.has_network) allow_all(&program, network_calls, sizeof network_calls / sizeof *network_calls);
  if (may.chooses_address) allow_all(&program, (const uint16_t[]){SYS_bind}, 1);
  if (may.is_server) {
    allow_all(&program, server_calls, sizeof server_calls / sizeof *server_calls);
    allow_non_blocking(&program);
  }
  only_if(&program, SYS_ioctl, 1);
  answer(&program, NO_TERMINAL);
  allow_threads(&program);
  if (may.has_network) allow_sockets(&program);
  allow_nodes(&program, SYS_mknodat, 2);
#ifdef SYS_mknod
  allow_nodes(&program, SYS_mknod, 1);
#endif
  answer(&program, ABSENT);
  if (program.count == MAX_STEPS) return fail_with(failure, E2BIG, "write the filter");
  struct sock_fprog loaded = {program.count, program.steps};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded, 0, 0) == 0) return 0;
  return fail(failure, "load the filter");
}

int load_confined_filter(bool has_network, struct failure *failure) {
  return load_filter((struct abilities){.has_network = has_network, .chooses_address = has_network}, failure);
}

int load_server_filter(bool chooses_address, struct failure *failure) {
  return load_filter((struct abilities){.has_network = true, .is_server = true, .chooses_address = chooses_address}, failure);
}
