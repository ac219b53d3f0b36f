#include "watch/inotify.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loop/descriptors.h"
#include "loop/loop.h"

enum { EVENTS_BUFFER = 16 * 1024 };

int inotify_fd = -1;
static struct watch source = {.fd = -1};
static void (*when_ready)(void);
static char buffer[EVENTS_BUFFER] __attribute__((aligned(__alignof__(struct inotify_event))));
static size_t at, length; // bytes read and not handled
static uint64_t position; // bytes handled before `at`

static void on_ready(struct watch *watch, uint32_t events) {
  (void)watch, (void)events;
  when_ready();
}

bool inotify_start(void (*ready)(void)) {
  int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) return false;
  bool is_reserved = is_reserved_fd(fd);
  if (is_reserved || !watch_add(&source, fd, EPOLLIN, on_ready)) {
    close(fd);
    return errno = is_reserved ? ENFILE : ENOMEM, false;
  }
  when_ready = ready;
  inotify_fd = fd;
  return true;
}

void inotify_stop(void) {
  watch_close(&source);
  inotify_fd = -1;
  position += length - at;
  at = length = 0;
}

void inotify_want(bool is_wanted) { watch_want(&source, is_wanted ? EPOLLIN : 0); }

struct inotify_event *inotify_event_at(size_t offset) {
  return at + offset < length ? (struct inotify_event *)(void *)(buffer + at + offset) : NULL;
}

bool inotify_read(void) {
  memmove(buffer, buffer + at, length - at);
  length -= at;
  at = 0;
  ssize_t got = read(inotify_fd, buffer + length, sizeof buffer - length);
  if (got > 0) length += (size_t)got;
  return got > 0;
}

void inotify_done(void) {
  size_t size = inotify_size(inotify_event_at(0));
  position += size;
  at += size;
}

uint64_t inotify_position(void) { return position; }

uint64_t inotify_queued(void) {
  int queued = 0;
  if (ioctl(inotify_fd, FIONREAD, &queued) < 0) queued = 0;
  return position + (length - at) + (size_t)queued;
}
