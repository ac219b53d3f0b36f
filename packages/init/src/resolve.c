#include "resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "limits.h"
#include "spawn.h"

enum { RECORD = 17 };

static void on_pipe(struct watch *, uint32_t events);
static void on_exit(struct child *, int status);
static _Noreturn void run_child(int pipe, const char *host);
static struct address address_of(const unsigned char *record, uint16_t port);

size_t resolve_literal(const char *host, uint16_t port, struct address *addresses) {
  unsigned char record[RECORD] = {4, 127, 0, 0, 1};
  if (!strcmp(host, "localhost")) {
    addresses[0] = address_of(record, port);
    memcpy(record, (unsigned char[RECORD]){[0] = 6, [16] = 1}, RECORD);
    addresses[1] = address_of(record, port);
    return 2;
  }
  if (inet_pton(AF_INET, host, record + 1) == 1) record[0] = 4;
  else if (inet_pton(AF_INET6, host, record + 1) == 1) record[0] = 6;
  else return 0;
  addresses[0] = address_of(record, port);
  return 1;
}

bool resolve_start(struct resolution *resolution, const char *host, uint16_t port,
                   void (*done)(struct resolution *, const struct address *, size_t count)) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) return false;
  *resolution = (struct resolution){.pipe.fd = -1, .port = port, .done = done};
  pid_t pid = is_reserved_fd(fds[1]) ? -1 : fork();
  if (pid == 0) run_child(fds[1], host);
  close(fds[1]);
  if (pid > 0 && watch_add(&resolution->pipe, fds[0], EPOLLIN, on_pipe)) {
    child_add(&resolution->child, pid, on_exit);
    return true;
  }
  if (pid > 0) kill(pid, SIGKILL);
  close(fds[0]);
  return false;
}

void resolve_cancel(struct resolution *resolution) {
  // SAFETY: in the table means not reaped, so the number is still this child's.
  if (resolution->child.pid) kill(resolution->child.pid, SIGKILL);
  child_remove(&resolution->child);
  watch_close(&resolution->pipe);
}

static void on_exit(struct child *child, int status) { (void)child, (void)status; }

static void on_pipe(struct watch *watch, uint32_t events) {
  struct resolution *resolution = containing(watch, struct resolution, pipe);
  struct address addresses[ADDRESSES_MAX];
  (void)events;
  ssize_t got = read(watch->fd, resolution->bytes + resolution->length, sizeof resolution->bytes - resolution->length);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) resolution->length += (size_t)got;
  if (got > 0 && resolution->length < sizeof resolution->bytes) return;
  size_t count = resolution->length / RECORD;
  for (size_t i = 0; i < count; i++) addresses[i] = address_of(resolution->bytes + i * RECORD, resolution->port);
  resolve_cancel(resolution);
  resolution->done(resolution, addresses, count);
}

static _Noreturn void run_child(int pipe, const char *host) {
  unsigned char records[ADDRESSES_MAX * RECORD];
  // Nothing but the pipe: an inherited end would hold other streams open.
  if (dup2(pipe, 3) < 0) _exit(1);
  for (int fd = 0; fd < 3; fd++) close(fd);
  close_inherited(4);
  signals_reset();
  alarm(TCP_CONNECT_MS / 1000);
  size_t count = look_up(host, records);
  _exit(write(3, records, count * RECORD) < 0);
}

static struct address address_of(const unsigned char *record, uint16_t port) {
  struct address address = {0};
  if (record[0] == 4) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address.at;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&v4->sin_addr, record + 1, 4);
    address.length = sizeof *v4;
  } else {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address.at;
    *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&v6->sin6_addr, record + 1, 16);
    address.length = sizeof *v6;
  }
  return address;
}
