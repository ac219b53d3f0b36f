// Tries one forbidden or allowed thing per line of output: "name errno-or-0". Run inside the sandbox by filter.test.ts.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *name, long result) { printf("%s %s\n", name, result < 0 ? strerrorname_np(errno) : "0"); }

#define TRY(name, call) (errno = 0, tell(name, (long)(call)))

static long traced_child(void) {
  pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  long result = ptrace(PTRACE_ATTACH, pid, 0, 0);
  int error = errno;
  kill(pid, SIGKILL);
  waitpid(pid, NULL, __WALL);
  errno = error;
  return result;
}

static long namespaced_clone(void) {
  long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  return pid;
}

int main(void) {
  char byte = 'x', buffer[64] = {0};
  void *nowhere = (void *)-1; // where a call that came through must not do harm
  struct iovec vector = {buffer, sizeof buffer};
  TRY("unshare_user", unshare(CLONE_NEWUSER));
  TRY("unshare_mount", unshare(CLONE_NEWNS));
  TRY("unshare_files", unshare(CLONE_FILES));
  TRY("clone_user", namespaced_clone());
  TRY("clone3", syscall(435, 0, 0));
  TRY("mount", mount("none", "/mnt", "tmpfs", 0, 0));
  TRY("umount", umount2("/mnt", 0));
  TRY("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 0));
  TRY("setns", setns(-1, 0));
  TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
  TRY("keyctl", syscall(SYS_keyctl, 0, -3, 0));
  TRY("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
  TRY("bpf", syscall(SYS_bpf, 0, buffer, sizeof buffer));
  TRY("perf_event_open", syscall(SYS_perf_event_open, buffer, 0, -1, -1, 0));
  TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
  TRY("io_uring", syscall(SYS_io_uring_setup, 1, buffer));
  TRY("open_by_handle", syscall(SYS_open_by_handle_at, AT_FDCWD, buffer, 0));
  TRY("settimeofday", syscall(SYS_settimeofday, nowhere, 0));
  TRY("clock_settime", syscall(SYS_clock_settime, 0, nowhere));
  TRY("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
  TRY("syslog", syscall(SYS_syslog, 3, buffer, 1));
  TRY("swapon", syscall(SYS_swapon, "x", 0));
  TRY("init_module", syscall(SYS_init_module, 0, 0, ""));
  TRY("kexec", syscall(SYS_kexec_load, 0, 1, nowhere, 0));
  TRY("acct", syscall(SYS_acct, nowhere));
  TRY("quotactl", syscall(SYS_quotactl, 0, 0, 0, 0));
  TRY("personality_query", personality(0xffffffff));
  TRY("personality_norandom", personality(0x0040000));
  TRY("tiocsti", ioctl(0, TIOCSTI, &byte));
  TRY("tiocsti_high", syscall(SYS_ioctl, 0, 0xdeadbeef00000000ul | TIOCSTI, &byte));
  TRY("tioclinux", ioctl(0, 0x541c, &byte));
  TRY("fionread", ioctl(0, FIONREAD, buffer));
  TRY("socket_unix", socket(AF_UNIX, SOCK_STREAM, 0));
  TRY("socket_inet", socket(AF_INET, SOCK_STREAM, 0));
  TRY("socket_inet6", socket(AF_INET6, SOCK_DGRAM, 0));
  TRY("socket_netlink_route", socket(AF_NETLINK, SOCK_RAW, 0));
  TRY("socket_netlink_audit", socket(AF_NETLINK, SOCK_RAW, 9));
  TRY("socket_vsock", socket(40, SOCK_STREAM, 0));
  TRY("socket_alg", socket(38, SOCK_SEQPACKET, 0));
  TRY("socket_packet", socket(17, SOCK_RAW, 0));
  TRY("ptrace_child", traced_child());
  TRY("process_vm_readv", process_vm_readv(getpid(), &vector, 1, &vector, 1, 0));
  TRY("chroot", chroot("/"));
  TRY("mknod_device", (unlink("/tmp/probe-dev"), mknod("/tmp/probe-dev", S_IFCHR | 0600, 0x103)));
  unlink("/tmp/probe-dev");
  TRY("mknod_fifo", (unlink("/tmp/probe-fifo"), mknod("/tmp/probe-fifo", S_IFIFO | 0600, 0)));
  unlink("/tmp/probe-fifo");
  TRY("newer_syscall", syscall(9999));
  TRY("mmap", mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
#ifdef __x86_64__
  TRY("x32", syscall(0x40000000 | SYS_getpid));
  long result; // the 32-bit entry: getpid is 20 there
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
  if (result < 0) errno = (int)-result;
  tell("int80", result);
#endif
  return 0;
}
