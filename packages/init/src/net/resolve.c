#include "net/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bounds.h"
#include "loop/descriptors.h"
#include "net/dns.h"

static void on_pipe(struct watch *, uint32_t events);
static void on_exit(struct child *, int status);
static _Noreturn void run_child(int pipe, const char *host);

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
  // SAFETY: a child in the table is not reaped, so the pid is still its own.
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
  size_t count = resolution->length / ADDRESS_RECORD;
  for (size_t i = 0; i < count; i++) addresses[i] = address_of(resolution->bytes + i * ADDRESS_RECORD, resolution->port);
  resolve_cancel(resolution);
  resolution->done(resolution, addresses, count);
}

static _Noreturn void run_child(int pipe, const char *host) {
  unsigned char records[ADDRESSES_MAX * ADDRESS_RECORD];
  // Closes all but the pipe: inherited descriptors would keep other streams open.
  if (dup2(pipe, 3) < 0) _exit(1);
  for (int fd = 0; fd < 3; fd++) close(fd);
  close_inherited(4);
  signals_reset();
  alarm(TCP_CONNECT_MS / 1000);
  size_t count = look_up(host, records);
  _exit(write(3, records, count * ADDRESS_RECORD) < 0);
}
