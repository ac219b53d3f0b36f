// Runs inside a sandbox: which limits a process has, and whether the kernel gives priorities away. One JSON line per result.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(const char *name, const char *result) {
  printf("{\"name\":\"%s\",\"result\":\"%s\"}\n", name, result);
  fflush(stdout);
}

static void show_limits(void) {
  static const char *const names[] = {"cpu",     "fsize", "data",  "stack",      "core",     "rss",  "nproc",  "nofile",
                                      "memlock", "as",    "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"};
  for (int resource = 0; resource < 16; resource++) {
    struct rlimit limit;
    char text[64] = "unknown";
    if (getrlimit((__rlimit_resource_t)resource, &limit) == 0) {
      snprintf(text, sizeof text, "%ju %ju", (uintmax_t)limit.rlim_cur, (uintmax_t)limit.rlim_max);
    }
    report(names[resource], text);
  }
}

static void try_schedulers(void) {
  static const struct {
    const char *name;
    int policy, priority;
  } tries[] = {{"other", SCHED_OTHER, 0},
               {"fifo", SCHED_FIFO, 1},
               {"rr", SCHED_RR, 1},
               {"deadline", 6, 0},
               {"fifo-reset", SCHED_FIFO | SCHED_RESET_ON_FORK, 1}};
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    struct sched_param param = {.sched_priority = tries[i].priority};
    // The call itself: a library may check its arguments first.
    long result = syscall(SYS_sched_setscheduler, 0, tries[i].policy, &param);
    report(tries[i].name, result == 0 ? "ok" : strerrorname_np(errno));
  }
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {.size = 48, .policy = 6, .runtime = 10000000, .deadline = 30000000, .period = 30000000};
  long result = syscall(SYS_sched_setattr, 0, &attributes, 0);
  report("setattr", result == 0 ? "ok" : strerrorname_np(errno));
}

static volatile sig_atomic_t was_warned;
static void warn(int signal) { was_warned = signal; }

// A child uses CPU time until it is stopped: was it warned first, and what ended it?
static void use_cpu(void) {
  int ends[2], status;
  if (pipe(ends) < 0) return;
  pid_t pid = fork();
  if (pid == 0) {
    signal(SIGXCPU, warn);
    while (!was_warned) continue;
    if (write(ends[1], "w", 1) != 1) _exit(1);
    for (;;) continue;
  }
  close(ends[1]);
  char warned = '-';
  (void)!read(ends[0], &warned, 1);
  waitpid(pid, &status, 0);
  report("warned", warned == 'w' ? "yes" : "no");
  report("ended-by", WIFSIGNALED(status) ? (WTERMSIG(status) == SIGKILL ? "SIGKILL" : "another") : "nothing");
}

// Asks for more than a small limit gives: memory of each kind, a file, descriptors and a message queue.
static void exceed_limits(void) {
  enum { mib = 1024 * 1024, large = 128 * mib };
  const int map = MAP_PRIVATE | MAP_ANONYMOUS;
  void *data = mmap(NULL, large, PROT_READ | PROT_WRITE, map, -1, 0);
  report("data", data == MAP_FAILED ? strerrorname_np(errno) : "ok");
  report("heap", sbrk(large) == (void *)-1 ? strerrorname_np(errno) : "ok");
  void *space = mmap(NULL, large, PROT_NONE, map, -1, 0);
  report("as", space == MAP_FAILED ? strerrorname_np(errno) : "ok");
  void *locked = mmap(NULL, mib, PROT_READ | PROT_WRITE, map, -1, 0);
  report("memlock", mlock(locked, mib) < 0 ? strerrorname_np(errno) : "ok");
  signal(SIGXFSZ, SIG_IGN);
  int file = open("/tmp/large", O_RDWR | O_CREAT | O_TRUNC, 0600);
  report("fsize", ftruncate(file, large) < 0 ? strerrorname_np(errno) : "ok");
  report("nofile", dup2(file, 150) < 0 ? strerrorname_np(errno) : "ok");
  struct mq_attr attributes = {.mq_maxmsg = 8, .mq_msgsize = 4096};
  mqd_t queue = mq_open("/limits", O_RDWR | O_CREAT, 0600, &attributes);
  report("msgqueue", queue < 0 ? strerrorname_np(errno) : "ok");
  mq_unlink("/limits");
}

int main(int count, char **words) {
  for (int i = 1; i < count; i++) {
    if (strcmp(words[i], "limits") == 0) show_limits();
    if (strcmp(words[i], "schedulers") == 0) try_schedulers();
    if (strcmp(words[i], "cpu") == 0) use_cpu();
    if (strcmp(words[i], "exceed") == 0) exceed_limits();
  }
  return 0;
}
