#include "loop/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct chunk {
  struct list node;
  size_t at, length;
  uint32_t tag;
  uint8_t bytes[];
};

static void on_writable(struct watch *, uint32_t events);
static void drain(struct sink *);
static void drop_chunks(struct sink *);

static void tell_taken(struct sink *sink, size_t bytes, uint32_t tag, bool is_last) {
  if (sink->owner->taken) sink->owner->taken(sink, bytes, tag, is_last);
}

static void tell_broken(struct sink *sink, int error) {
  if (sink->owner->broken) sink->owner->broken(sink, error);
}

static void tell_ended(struct sink *sink) {
  if (sink->owner->ended) sink->owner->ended(sink);
}

bool sink_open(struct sink *sink, int fd, const struct sink_owner *owner) {
  sink->owner = owner;
  sink->is_ending = false;
  list_init(&sink->chunks);
  sink->watch.fd = -1;
  if (fd < 0 || watch_add(&sink->watch, fd, 0, on_writable)) return true;
  close(fd);
  return false;
}

bool sink_write(struct sink *sink, const uint8_t *bytes, size_t length, uint32_t tag) {
  size_t done = 0;
  if (!sink_is_open(sink)) return tell_taken(sink, length, tag, true), true;
  if (list_is_empty(&sink->chunks)) {
    ssize_t wrote = write(sink->watch.fd, bytes, length);
    if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
      int error = errno;
      sink_close(sink);
      tell_taken(sink, length, tag, true);
      return tell_broken(sink, error), true;
    }
    if (wrote > 0) done = (size_t)wrote;
  }
  if (done == length) return tell_taken(sink, length, tag, true), true;
  struct chunk *chunk = malloc(sizeof *chunk + length - done);
  if (!chunk) return false;
  *chunk = (struct chunk){.length = length - done, .tag = tag};
  memcpy(chunk->bytes, bytes + done, length - done);
  list_append(&sink->chunks, &chunk->node);
  watch_want(&sink->watch, EPOLLOUT);
  if (done) tell_taken(sink, done, tag, false);
  return true;
}

void sink_end(struct sink *sink) {
  sink->is_ending = true;
  if (sink_is_open(sink) && list_is_empty(&sink->chunks)) tell_ended(sink);
}

void sink_close(struct sink *sink) {
  watch_close(&sink->watch);
  drop_chunks(sink);
}

bool sink_is_open(const struct sink *sink) { return sink->watch.fd >= 0; }

static void on_writable(struct watch *watch, uint32_t events) {
  struct sink *sink = containing(watch, struct sink, watch);
  if (!list_is_empty(&sink->chunks)) return drain(sink);
  // The queue is empty, so this is a hang-up. A program would notice it at its next write, and so do we.
  (void)events;
}

static void drain(struct sink *sink) {
  struct chunk *chunk = containing(sink->chunks.next, struct chunk, node);
  ssize_t wrote = write(sink->watch.fd, chunk->bytes + chunk->at, chunk->length - chunk->at);
  if (wrote < 0 && errno != EAGAIN && errno != EINTR) {
    int error = errno;
    sink_close(sink);
    return tell_broken(sink, error);
  }
  if (wrote <= 0) return;
  chunk->at += (size_t)wrote;
  bool is_last = chunk->at == chunk->length;
  uint32_t tag = chunk->tag;
  if (is_last) {
    list_remove(&chunk->node);
    free(chunk);
    if (list_is_empty(&sink->chunks)) watch_want(&sink->watch, 0);
  }
  bool is_empty = list_is_empty(&sink->chunks);
  tell_taken(sink, (size_t)wrote, tag, is_last);
  if (is_empty && sink->is_ending && sink_is_open(sink)) tell_ended(sink);
}

static void drop_chunks(struct sink *sink) {
  while (!list_is_empty(&sink->chunks)) {
    struct chunk *chunk = containing(sink->chunks.next, struct chunk, node);
    list_remove(&chunk->node);
    tell_taken(sink, chunk->length - chunk->at, chunk->tag, true);
    free(chunk);
  }
}
