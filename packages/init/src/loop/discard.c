#include "loop/discard.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bounds.h"
#include "loop/loop.h"

struct drain {
  struct watch watch;
  struct list node;
};

static struct list drains = {&drains, &drains}; // oldest first
static unsigned count;

static void on_readable(struct watch *, uint32_t events);
static void end(struct drain *);

void discard(int fd) {
  if (fd < 0) return;
  struct drain *drain = malloc(sizeof *drain);
  if (!drain || !watch_add(&drain->watch, fd, EPOLLIN, on_readable)) {
    free(drain);
    close(fd);
    return;
  }
  list_append(&drains, &drain->node);
  // With thousands of background writers the oldest pipes are closed, so that PID 1 keeps free descriptors.
  if (++count > DISCARDS_MAX) end(containing(drains.next, struct drain, node));
}

static void on_readable(struct watch *watch, uint32_t events) {
  static char nowhere[64 * 1024];
  (void)events;
  ssize_t got = read(watch->fd, nowhere, sizeof nowhere);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  end(containing(watch, struct drain, watch));
}

static void end(struct drain *drain) {
  watch_close(&drain->watch);
  list_remove(&drain->node);
  count--;
  free(drain);
}
