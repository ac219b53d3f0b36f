#ifndef SVC_FILTER_RULES_H
#define SVC_FILTER_RULES_H

// The system calls that user processes may make, as data. All other known calls fail with EPERM; numbers above
// the highest one named here fail with ENOSYS, so that programs fall back as on an older kernel.

// clang-format off: lists, as wide as they fit.

// In every profile. The generator skips names that this architecture lacks.
static const char *const allowed_always[] = {
    "accept", "accept4", "access", "alarm", "arch_prctl", "bind", "brk", "capget", "capset", "chdir", "chmod", "chown",
    "clock_getres", "clock_gettime", "clock_nanosleep", "close", "close_range", "connect", "copy_file_range", "creat",
    "dup", "dup2", "dup3", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd", "eventfd2", "execve", "execveat", "exit", "exit_group", "faccessat", "faccessat2", "fadvise64",
    "fallocate", "fchdir", "fchmod", "fchmodat", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr",
    "flock", "fork", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futex", "futex_waitv",
    "futimesat", "get_robust_list", "get_thread_area", "getcpu", "getcwd", "getdents", "getdents64", "getegid",
    "geteuid", "getgid", "getgroups", "getitimer", "getpeername", "getpgid", "getpgrp", "getpid", "getppid",
    "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "getsockname",
    "getsockopt", "gettid", "gettimeofday", "getuid", "getxattr", "inotify_add_watch", "inotify_init", "inotify_init1",
    "inotify_rm_watch", "ioctl",
    "ioprio_get", "ioprio_set", "kill", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",
    "lchown", "lgetxattr", "link", "linkat", "listen", "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr",
    "lstat", "madvise", "membarrier", "memfd_create", "memfd_secret", "mincore", "mkdir", "mkdirat", "mlock", "mlock2",
    "mlockall", "mmap", "mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend",
    "mq_unlink", "mremap", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock", "munlockall", "munmap",
    "nanosleep", "newfstatat", "open", "openat", "openat2", "pause", "pidfd_open", "pidfd_send_signal", "pipe",
    "pipe2", "pkey_alloc", "pkey_free", "pkey_mprotect", "poll", "ppoll", "prctl", "pread64", "preadv", "preadv2",
    "prlimit64", "process_mrelease", "pselect6", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink",
    "readlinkat", "readv", "recvfrom", "recvmmsg", "recvmsg", "remap_file_pages", "removexattr", "rename", "renameat",
    "renameat2", "restart_syscall", "rmdir", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
    "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setparam", "sched_yield", "seccomp", "select", "semctl", "semget", "semop", "semtimedop", "sendfile",
    "sendmmsg", "sendmsg", "sendto", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsuid",
    "setgid", "setgroups", "setitimer", "setpgid", "setpriority", "setregid", "setresgid", "setresuid", "setreuid",
    "setrlimit", "setsid", "setsockopt", "setuid", "setxattr", "shmat", "shmctl", "shmdt", "shmget", "shutdown",
    "sigaltstack", "signalfd", "signalfd4", "splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync",
    "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time", "timer_create", "timer_delete",
    "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    "times", "tkill", "truncate", "umask", "uname", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vfork",
    "vmsplice", "wait4", "waitid", "write", "writev",
};

// As on a kernel without them (ENOSYS), so that programs fall back. clone3: its flags are behind a pointer, which a filter cannot read.
// The others: one table for the whole host (fs.aio-max-nr), which one sandbox could fill for all others.
static const char *const absent[] = {
    "clone3", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit",
};

// Only in `default`.
static const char *const allowed_by_default[] = {
    "chroot", "kcmp", "mknod", "mknodat", "pidfd_getfd", "process_madvise", "process_vm_readv", "process_vm_writev",
    "ptrace", "set_mempolicy", "get_mempolicy", "mbind", "name_to_handle_at",
};

// Known and refused; named so that the highest of them marks where "newer than known" starts. (clone, unshare,
// socket, socketpair, personality and, in `restricted`, mknod have their own rules in the generator.)
static const char *const refused[] = {
    "acct", "add_key", "adjtimex", "afs_syscall", "bpf", "clock_adjtime", "clock_settime", "create_module",
    "delete_module", "fanotify_init", "fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "get_kernel_syms", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl",
    "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "migrate_pages", "modify_ldt", "mount",
    "mount_setattr", "move_mount", "move_pages", "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open",
    "pivot_root", "query_module", "quotactl", "quotactl_fd", "reboot", "request_key", "sched_setattr", "set_mempolicy_home_node",
    "setdomainname", "sethostname", "setns", "settimeofday", "swapoff", "swapon", "syslog", "sysfs", "umount2",
    "uselib", "userfaultfd", "ustat", "vhangup", "vserver",
};

// clang-format on

// sched_setscheduler: other, batch, idle; real-time and deadline threads would escape the CPU quota. (sched_setattr has
// its policy behind a pointer, which a filter cannot read.)
static const unsigned allowed_schedulers[] = {0, 3, 5};
enum { RESET_ON_FORK = 0x40000000 };

// personality: plain Linux, 32-bit addresses, a query of the current one, and both without address randomisation.
static const unsigned allowed_personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};

// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; unshare has NEWTIME too.
enum { NAMESPACE_FLAGS = 0x7e020000, TIME_NAMESPACE = 0x80 };

// Terminal requests that insert bytes into the input of a terminal: a known way out of a sandbox.
static const unsigned refused_ioctls[] = {0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */};

#endif
