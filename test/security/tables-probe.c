// Runs inside a sandbox and takes all it can get of one table of the kernel's, then holds it until it is killed.
// One JSON object: which table, and how much it took before which error.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As many as it takes until memory is the bound, not what each process may open. */
static long children = 64;

/* Of one process. Little of everything is enough to see whether there is any left. */
static long most = 1000000;
enum { LITTLE = 100 };

/* Shared with the children, over a pipe: how many were taken, and the last error. */
struct outcome {
  long count;
  int error;
};

static int open_terminal(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY); }
static int make_event(void) { return eventfd(0, 0); }
static int make_queue(void) { return msgget(IPC_PRIVATE, 0600); }


static int make_timer(void) {
  timer_t timer;
  return timer_create(CLOCK_MONOTONIC, NULL, &timer);
}

/* Closed at once: what counts is the queue, not the descriptor. */
static int make_posix_queue(void) {
  static int number;
  char name[64];
  snprintf(name, sizeof name, "/probe-%d-%d", getpid(), number++);
  mqd_t queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, NULL);
  return queue < 0 ? -1 : mq_close(queue);
}

static void remove_posix_queues(long count) {
  char name[64];
  for (long number = 0; number < count; number++) {
    snprintf(name, sizeof name, "/probe-%d-%ld", getpid(), number);
    mq_unlink(name);
  }
}

static int set_up_aio(void) {
  unsigned long context = 0;
  return (int)syscall(SYS_io_setup, 1024, &context);
}

static struct outcome take(int (*get)(void)) {
  struct outcome outcome = {0};
  while (outcome.count < most && get() >= 0) outcome.count++;
  outcome.error = outcome.count == most ? 0 : errno;
  return outcome;
}

/* A user has a limit of its own; what counts is the table behind it, and a sandbox has many users. */
static struct outcome take_as_users(int (*get)(void)) {
  struct outcome total = {0};
  for (uid_t user = 0; user < (most == LITTLE ? 1 : 4); user++) {
    if (user > 0 && syscall(SYS_setresuid, user, 0, 0) < 0) return (struct outcome){total.count, errno};
    struct outcome outcome = take(get);
    total.count += outcome.count;
    total.error = outcome.error;
  }
  return total;
}

/* A process has a limit of its own; what counts is the table behind it. */
static struct outcome take_in_children(int (*get)(void)) {
  struct outcome total = {0};
  for (long i = 0; i < children; i++) {
    int ends[2];
    struct outcome outcome = {0};
    if (pipe(ends) < 0) break;
    pid_t pid = fork();
    if (pid == 0) {
      outcome = take(get);
      if (write(ends[1], &outcome, sizeof outcome) != sizeof outcome) _exit(1);
      for (;;) pause();
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], &outcome, sizeof outcome) != sizeof outcome) break;
    close(ends[0]);
    total.count += outcome.count;
    total.error = outcome.error;
    if (outcome.error != EMFILE) break;
  }
  return total;
}

/* Fills connections of its own that are never read; counts MiB. */
static struct outcome fill_sockets(void) {
  static char block[65536];
  struct outcome outcome = {0};
  long bytes = 0;
  int listener = socket(AF_INET, SOCK_STREAM, 0), large = (most == LITTLE ? 1 : 64) << 20;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
  if (bind(listener, (void *)&address, length) < 0 || listen(listener, 64) < 0) return (struct outcome){0, errno};
  getsockname(listener, (void *)&address, &length);
  for (int i = 0; i < (most == LITTLE ? 1 : 100); i++) {
    int near = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(near, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    if (near < 0 || connect(near, (void *)&address, length) < 0 || accept(listener, NULL, NULL) < 0) break;
    fcntl(near, F_SETFL, O_NONBLOCK);
    ssize_t sent;
    /* A moment for the other side to take it over. */
    for (int tries = 0; tries < 3; usleep(1000), tries++) {
      while ((sent = write(near, block, sizeof block)) > 0) bytes += sent, tries = 0;
    }
  }
  outcome.error = errno;
  outcome.count = bytes >> 20;
  return outcome;
}

/* Talks to many addresses that could be neighbours. */
static struct outcome seek_neighbours(void) {
  struct outcome outcome = {0};
  int fd = socket(AF_INET, SOCK_DGRAM, 0), six = socket(AF_INET6, SOCK_DGRAM, 0);
  for (uint32_t i = 1; i < 4000; i++) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(0xa9fe0000 + i)}};
    if (sendto(fd, "x", 1, MSG_DONTWAIT, (void *)&four, sizeof four) > 0) outcome.count++;
    struct sockaddr_in6 link = {.sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_scope_id = 2};
    inet_pton(AF_INET6, "fe80::1:0", &link.sin6_addr);
    link.sin6_addr.s6_addr[14] = (uint8_t)(i >> 8), link.sin6_addr.s6_addr[15] = (uint8_t)i;
    if (sendto(six, "x", 1, MSG_DONTWAIT, (void *)&link, sizeof link) > 0) outcome.count++;
  }
  outcome.error = errno;
  return outcome;
}

int main(int count, char **words) {
  struct outcome outcome = {0, EINVAL};
  const char *table = count > 1 ? words[1] : "";
  bool is_brief = count > 2 && strcmp(words[2], "briefly") == 0;
  if (is_brief) most = LITTLE;
  else if (count > 2) children = strtol(words[2], NULL, 10);
  /* More than the kernel has for all sandboxes together, as it comes. */
  if (strcmp(table, "ptys") == 0 && most > 4000) most = 4000;
  if (strcmp(table, "ptys") == 0) outcome = take_in_children(open_terminal);
  if (strcmp(table, "files") == 0) outcome = take_in_children(make_event);
  if (strcmp(table, "queues") == 0) outcome = take(make_queue);
  /* More than the limit of one user; where there is no such table it is enough, too. */
  if (strcmp(table, "mqueues") == 0 && most > 4000) most = 4000;
  if (strcmp(table, "timers") == 0) outcome = take_as_users(make_timer);
  if (strcmp(table, "mqueues") == 0) outcome = take_as_users(make_posix_queue);
  if (strcmp(table, "aio") == 0) outcome = take(set_up_aio);
  if (strcmp(table, "sockets") == 0) outcome = fill_sockets();
  if (strcmp(table, "neighbours") == 0) outcome = seek_neighbours();
  const char *error = outcome.error == 0 ? "none" : strerrorname_np(outcome.error);
  printf("{\"table\":\"%s\",\"count\":%ld,\"error\":\"%s\"}\n", table, outcome.count, error);
  fflush(stdout);
  if (is_brief && strcmp(table, "mqueues") == 0) remove_posix_queues(outcome.count);
  if (is_brief) return 0;
  for (;;) pause();
}
