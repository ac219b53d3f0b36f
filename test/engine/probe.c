// Runs inside a sandbox and tries what must be refused there. One JSON object per line: what was tried and how it ended,
// "ok" or the name of the error. Calls that succeed must do no harm: pointers lead nowhere, files are its own.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNECT_MS = 1500, ANSWER_MS = 60000, ECHO_MS = 500 };

static void report(const char *name, const char *result) {
  printf("{\"name\":\"%s\",\"result\":\"%s\"}\n", name, result);
  fflush(stdout);
}

static const char *outcome(long result) { return result < 0 ? strerrorname_np(errno) : "ok"; }

#define TRY(name, call) (errno = 0, report(name, outcome((long)(call))))

static long in_child(long (*act)(void)) {
  int fds[2], error = 0;
  if (pipe(fds) < 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    error = act() < 0 ? errno : 0;
    _exit(write(fds[1], &error, sizeof error) < 0);
  }
  close(fds[1]);
  if (read(fds[0], &error, sizeof error) != sizeof error) error = ECHILD;
  close(fds[0]);
  waitpid(pid, NULL, 0);
  errno = error;
  return error ? -1 : 0;
}

static long unshare_user(void) { return unshare(CLONE_NEWUSER); }
static long unshare_mount(void) { return unshare(CLONE_NEWNS); }
static long unshare_net(void) { return unshare(CLONE_NEWNET); }
static long unshare_cgroup(void) { return unshare(CLONE_NEWCGROUP); }

static long clone_user(void) {
  long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  return pid;
}

static long setns_of_init(void) {
  int fd = open("/proc/1/ns/mnt", O_RDONLY);
  return setns(fd, 0); // without the descriptor the call itself must be refused all the same
}

static long trace_child(void) {
  pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  long result = ptrace(PTRACE_ATTACH, pid, 0, 0);
  int error = errno;
  kill(pid, SIGKILL);
  waitpid(pid, NULL, __WALL);
  errno = error;
  return result;
}

/** Lets go at once when it may, so that PID 1 goes on. */
static long trace_init(int how) {
  long result = ptrace(how, 1, 0, 0);
  if (result < 0) return -1;
  if (how == PTRACE_ATTACH) waitpid(1, NULL, __WALL);
  ptrace(PTRACE_DETACH, 1, 0, 0);
  return result;
}

static long read_memory_of_init(void) {
  char buffer[16];
  struct iovec local = {buffer, sizeof buffer}, remote = {(void *)0x400000, sizeof buffer};
  return process_vm_readv(1, &local, 1, &remote, 1, 0);
}

static long take_descriptor_of_init(void) {
  int init = (int)syscall(SYS_pidfd_open, 1, 0);
  return init < 0 ? -1 : syscall(SYS_pidfd_getfd, init, 0, 0);
}

static long inject_terminal_input(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) return -1;
  int slave = open(ptsname(master), O_RDWR);
  char byte = 'x';
  return slave < 0 ? -1 : ioctl(slave, TIOCSTI, &byte);
}

static long make_device(mode_t type, unsigned major_number, unsigned minor_number) {
  unlink("/tmp/probe-device");
  long result = mknod("/tmp/probe-device", type | 0600, makedev(major_number, minor_number));
  int error = errno;
  // A node may be made where it is of no use.
  if (result == 0) result = open("/tmp/probe-device", O_RDONLY);
  if (result < 0 && errno) error = errno;
  unlink("/tmp/probe-device");
  errno = error;
  return result;
}

static void try_calls(void) {
  char buffer[128] = {0};
  void *nowhere = (void *)-1;
  TRY("unshare_user", in_child(unshare_user));
  TRY("unshare_mount", in_child(unshare_mount));
  TRY("unshare_net", in_child(unshare_net));
  TRY("unshare_cgroup", in_child(unshare_cgroup));
  TRY("clone_user", clone_user());
  TRY("setns", setns_of_init());
  TRY("mount_tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
  TRY("mount_proc", mount("proc", "/tmp", "proc", 0, NULL));
  TRY("mount_cgroup", mount("cgroup", "/tmp", "cgroup", 0, "rdma"));
  TRY("remount_sys", mount(NULL, "/sys", NULL, MS_REMOUNT, NULL));
  TRY("umount", umount2("/dev/shm", MNT_DETACH));
  TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  TRY("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
  TRY("move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0));
  TRY("mount_setattr", syscall(442, AT_FDCWD, "/", 0, nowhere, 32));
  TRY("pivot_root", syscall(SYS_pivot_root, "/", "/tmp"));
  TRY("keyctl", syscall(SYS_keyctl, 0, -3, 0));
  TRY("add_key", syscall(SYS_add_key, "user", "probe", "x", 1, -3));
  TRY("request_key", syscall(SYS_request_key, "user", "probe", NULL, -3));
  TRY("bpf", syscall(SYS_bpf, 0, buffer, sizeof buffer));
  TRY("perf_event_open", syscall(SYS_perf_event_open, buffer, 0, -1, -1, 0));
  TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
  TRY("io_uring_setup", syscall(SYS_io_uring_setup, 1, buffer));
  TRY("io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0));
  TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, buffer, 0));
  TRY("clock_settime", syscall(SYS_clock_settime, 0, nowhere));
  TRY("settimeofday", syscall(SYS_settimeofday, nowhere, NULL));
  TRY("adjtimex", syscall(SYS_adjtimex, nowhere));
  TRY("kexec_load", syscall(SYS_kexec_load, 0, 1, nowhere, 0));
  TRY("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, "", 0));
  TRY("init_module", syscall(SYS_init_module, nowhere, 0, ""));
  TRY("finit_module", syscall(SYS_finit_module, -1, "", 0));
  TRY("delete_module", syscall(SYS_delete_module, "no-such-module", O_NONBLOCK));
  TRY("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
  TRY("syslog", syscall(SYS_syslog, 3, buffer, 1));
  TRY("swapon", syscall(SYS_swapon, "/nowhere", 0));
  TRY("acct", syscall(SYS_acct, nowhere));
  TRY("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
  TRY("sethostname", syscall(SYS_sethostname, "probe", 5));
#ifdef SYS_iopl // ports of their own have x86 machines only
  TRY("iopl", syscall(SYS_iopl, 3));
#endif
  TRY("tiocsti", inject_terminal_input());
  TRY("socket_packet", socket(AF_PACKET, SOCK_RAW, 0));
  TRY("socket_raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
  TRY("socket_vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  TRY("socket_alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
  TRY("mknod_block", make_device(S_IFBLK, 7, 0));
  TRY("mknod_mem", make_device(S_IFCHR, 1, 1));
  TRY("mknod_kvm", make_device(S_IFCHR, 10, 232));
  TRY("ptrace_init", trace_init(PTRACE_ATTACH));
  TRY("ptrace_seize_init", trace_init(PTRACE_SEIZE));
  TRY("read_memory_of_init", read_memory_of_init());
  TRY("take_descriptor_of_init", take_descriptor_of_init());
  TRY("open_memory_of_init", open("/proc/1/mem", O_RDONLY));
  TRY("write_program_of_init", open("/proc/1/exe", O_WRONLY));
  TRY("write_init", open("/.svc/init", O_WRONLY));
  TRY("truncate_init", truncate("/.svc/init", 0));
}

/** What only `restricted` refuses. */
static void try_default_calls(void) {
  TRY("ptrace_child", trace_child());
  TRY("chroot", chroot("/"));
  TRY("chown", chown("/tmp", 1, 1));
  TRY("setuid", syscall(SYS_setuid, 1));
}

static void connect_to(const char *address, const char *port) {
  char name[128];
  snprintf(name, sizeof name, "%s:%s", address, port);
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)atoi(port))};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six.sin6_port};
  bool is_six = strchr(address, ':') != NULL;
  inet_pton(is_six ? AF_INET6 : AF_INET, address, is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr);
  int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  long result = is_six ? connect(fd, (void *)&six, sizeof six) : connect(fd, (void *)&four, sizeof four);
  if (result < 0 && errno == EINPROGRESS) {
    struct pollfd waiting = {fd, POLLOUT, 0};
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (poll(&waiting, 1, CONNECT_MS) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    result = error ? -1 : 0;
  }
  report(name, outcome(result));
}

/** Address and port pairs, all at once. */
static void try_connections(int count, char **places) {
  for (int i = 0; i + 1 < count; i += 2) {
    if (fork() != 0) continue;
    connect_to(places[i], places[i + 1]);
    exit(0);
  }
  while (wait(NULL) > 0) continue;
}

/** An echo request without a raw socket, again every so often until it is answered; "ETIMEDOUT" when it is not within so many ms. */
static void ping6(const char *address, int patience_ms) {
  struct sockaddr_in6 peer = {.sin6_family = AF_INET6};
  inet_pton(AF_INET6, address, &peer.sin6_addr);
  int fd = socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6);
  if (fd < 0) return report(address, outcome(fd));
  for (int sequence = 1; (sequence - 1) * ECHO_MS < patience_ms; sequence++) {
    struct icmp6_hdr echo = {.icmp6_type = ICMP6_ECHO_REQUEST, .icmp6_seq = htons((unsigned short)sequence)};
    struct pollfd waiting = {fd, POLLIN, 0};
    if (sendto(fd, &echo, sizeof echo, 0, (void *)&peer, sizeof peer) < 0) return report(address, outcome(-1));
    if (poll(&waiting, 1, ECHO_MS) != 1) continue;
    struct icmp6_hdr answer = {0};
    ssize_t got = recv(fd, &answer, sizeof answer, 0);
    if (got < 0) return report(address, outcome(got));
    if (answer.icmp6_type == ICMP6_ECHO_REPLY) return report(address, "ok");
  }
  report(address, "ETIMEDOUT");
}

static void ping(const char *address, int patience_ms) {
  if (strchr(address, ':') != NULL) return ping6(address, patience_ms);
  struct sockaddr_in peer = {.sin_family = AF_INET};
  inet_pton(AF_INET, address, &peer.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
  if (fd < 0) return report(address, outcome(fd));
  for (int sequence = 1; (sequence - 1) * ECHO_MS < patience_ms; sequence++) {
    struct icmphdr echo = {.type = ICMP_ECHO, .un.echo.sequence = htons((unsigned short)sequence)};
    struct pollfd waiting = {fd, POLLIN, 0};
    if (sendto(fd, &echo, sizeof echo, 0, (void *)&peer, sizeof peer) < 0) return report(address, outcome(-1));
    if (poll(&waiting, 1, ECHO_MS) != 1) continue;
    struct icmphdr answer = {0};
    struct sockaddr_in sender = {0};
    socklen_t size = sizeof sender;
    ssize_t got = recvfrom(fd, &answer, sizeof answer, 0, (void *)&sender, &size);
    if (got < 0) return report(address, outcome(got));
    if (answer.type == ICMP_ECHOREPLY && sender.sin_addr.s_addr == peer.sin_addr.s_addr) return report(address, "ok");
  }
  report(address, "ETIMEDOUT");
}

/** A path, or an abstract name after "@". */
static int dial(const char *place) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, place, sizeof address.sun_path - 1);
  size_t size = offsetof(struct sockaddr_un, sun_path) + strlen(address.sun_path);
  if (*place == '@') address.sun_path[0] = 0;
  else size++;
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (void *)&address, (socklen_t)size) == 0) return fd;
  int error = errno;
  close(fd);
  return errno = error, -1;
}

/** Says these bytes and waits for the other end: "closed", "silent", or how many bytes it said. */
static void say(const char *name, const char *place, const char *bytes, size_t size) {
  char answer[4096], result[32];
  int fd = dial(place);
  if (fd < 0) return report(name, strerrorname_np(errno));
  if (write(fd, bytes, size) < 0) return report(name, "closed");
  struct pollfd waiting = {fd, POLLIN, 0};
  if (poll(&waiting, 1, ANSWER_MS) != 1) return report(name, "silent");
  ssize_t length = read(fd, answer, sizeof answer);
  snprintf(result, sizeof result, "%zd bytes", length);
  report(name, length <= 0 ? "closed" : result);
  close(fd);
}

static void try_engine_socket(const char *place) {
  char preamble[41] = "SVC1C";
  signal(SIGPIPE, SIG_IGN);
  memset(preamble + 9, 7, 32);
  say("garbage", place, "GET / HTTP/1.1\r\nhost: engine\r\n\r\nand more than a preamble", 58);
  say("wrong token for control", place, preamble, sizeof preamble);
  preamble[4] = 'S';
  say("wrong token for a session", place, preamble, sizeof preamble);
  say("half a preamble", place, preamble, 20);
}

/** Opens connections until it is refused or has as many, says how many, and holds them until its input ends. */
static void hold(const char *place, int count) {
  char line[16];
  int held = 0;
  for (; held < count && dial(place) >= 0; held++) continue;
  snprintf(line, sizeof line, "%d", held);
  report("held", line);
  while (read(0, line, sizeof line) > 0) continue;
}

/** Opens files until it may not, says how many it has and why there are no more, and holds them until its input ends. */
static void open_many(void) {
  char line[64];
  int held = 0;
  while (open("/dev/null", O_RDONLY) >= 0) held++;
  snprintf(line, sizeof line, "%d", held);
  report(strerrorname_np(errno), line);
  while (read(0, line, sizeof line) > 0) continue;
}

/** Leaves zombies, prints how many, and stays until its input ends. */
static void leave_zombies(int count) {
  char line[16];
  int left = 0;
  for (; left < count; left++) {
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    if (pid < 0) break;
  }
  snprintf(line, sizeof line, "%d", left);
  report("zombies", line);
  while (read(0, line, sizeof line) > 0) continue;
}

/** Every process forks for ever, also after a refusal. */
static void bomb(void) {
  for (;;)
    if (fork() < 0) usleep(1000);
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "";
  if (!strcmp(what, "calls")) try_calls();
  else if (!strcmp(what, "default-calls")) try_default_calls();
  else if (!strcmp(what, "connect")) try_connections(count - 2, words + 2);
  else if (!strcmp(what, "engine-socket") && count > 2) try_engine_socket(words[2]);
  else if (!strcmp(what, "dial") && count > 2) TRY(words[2], dial(words[2]));
  else if (!strcmp(what, "ping") && count > 3) ping(words[3], atoi(words[2]));
  else if (!strcmp(what, "hold") && count > 3) hold(words[2], atoi(words[3]));
  else if (!strcmp(what, "open-many")) open_many();
  else if (!strcmp(what, "zombies") && count > 2) leave_zombies(atoi(words[2]));
  else if (!strcmp(what, "bomb")) bomb();
  else return 2;
  return 0;
}
