#include "relay/joint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/** Holds a whole frame of output, so that a gigabyte takes some thousand reads. */
enum { CHUNK_BYTES = 256 * 1024 };

static struct end *other_of(struct end *end) {
  struct joint *joint = end->joint;
  return end == &joint->caller ? &joint->guest : &joint->caller;
}

static bool has_kept(const struct end *end) { return end->kept_end > end->kept_start; }

static void forget_kept(struct end *end) {
  free(end->kept);
  end->kept = NULL;
  end->kept_start = end->kept_end = 0;
}

/** A side without read interest still reports a hang-up: useful for a caller, but a guest's would repeat forever. */
static void watch(int epoll, struct end *end) {
  uint32_t events = (has_kept(other_of(end)) ? 0 : EPOLLIN) | (has_kept(end) ? EPOLLOUT : 0);
  bool is_watched = events != 0 || end == &end->joint->caller;
  if (end->socket < 0 || (is_watched == end->is_watched && events == end->events)) return;
  struct epoll_event event = {.events = events, .data.ptr = end};
  int change = !is_watched ? EPOLL_CTL_DEL : end->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  // It fails only for want of memory; an unwatched side must not be waited for.
  if (epoll_ctl(epoll, change, end->socket, &event) < 0) end->joint->is_over = true;
  end->is_watched = is_watched;
  end->events = events;
}

static void close_end(int epoll, struct end *end) {
  if (end->socket < 0) return;
  if (end->is_watched) epoll_ctl(epoll, EPOLL_CTL_DEL, end->socket, NULL);
  close(end->socket);
  end->socket = -1;
  end->is_watched = false;
  forget_kept(end);
}

void close_joint(int epoll, struct joint *joint) {
  close_end(epoll, &joint->caller);
  close_end(epoll, &joint->guest);
}

struct joint *make_joint(int epoll, const char *id, int caller, int guest, struct failure *failure) {
  struct joint *joint = calloc(1, sizeof *joint);
  if (joint == NULL) {
    close(caller);
    close(guest);
    fail_with(failure, ENOMEM, "join");
    return NULL;
  }
  strncpy(joint->id, id, sizeof joint->id - 1);
  joint->caller = (struct end){.joint = joint, .socket = caller};
  joint->guest = (struct end){.joint = joint, .socket = guest};
  watch(epoll, &joint->caller);
  watch(epoll, &joint->guest);
  if (!joint->is_over) return joint;
  close_joint(epoll, joint);
  free(joint);
  fail_with(failure, ENOSPC, "watch a connection");
  return NULL;
}

/** Number of bytes taken; -1 when the side is closed for good. */
static ssize_t give(const struct end *end, const unsigned char *bytes, size_t length) {
  size_t taken = 0;
  while (taken < length) {
    ssize_t count = send(end->socket, bytes + taken, length - taken, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) taken += (size_t)count;
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) return -1;
  }
  return (ssize_t)taken;
}

/** It reads nothing any more. A guest may have sent its last bytes before. */
static void become_deaf(struct end *end) {
  forget_kept(end);
  end->is_deaf = true;
  if (end == &end->joint->caller) end->joint->is_over = true;
}

static void write_to(struct end *end, const unsigned char *bytes, size_t length) {
  if (end->is_deaf) return;
  ssize_t taken = give(end, bytes, length);
  if (taken < 0) return become_deaf(end);
  if ((size_t)taken == length) return;
  size_t left = length - (size_t)taken;
  if ((end->kept = malloc(left)) == NULL) {
    // A stream must not have gaps.
    end->joint->is_over = true;
    return;
  }
  memcpy(end->kept, bytes + taken, left);
  end->kept_end = left;
}

static void give_kept(struct end *end) {
  ssize_t taken = give(end, end->kept + end->kept_start, end->kept_end - end->kept_start);
  if (taken < 0) return become_deaf(end);
  end->kept_start += (size_t)taken;
  if (!has_kept(end)) forget_kept(end);
}

static void read_from(struct end *end) {
  static unsigned char bytes[CHUNK_BYTES];
  ssize_t length = recv(end->socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) {
    end->joint->is_over = true;
    return;
  }
  if (end == &end->joint->caller) end->joint->has_said = true;
  write_to(other_of(end), bytes, (size_t)length);
}

void forward(int epoll, struct end *end, uint32_t events) {
  struct joint *joint = end->joint;
  // Another event of the same batch may have ended it.
  if (joint->is_over || end->socket < 0) return;
  if ((events & EPOLLOUT) != 0 && has_kept(end)) give_kept(end);
  bool is_gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if ((is_gone || (events & EPOLLIN) != 0) && !has_kept(other_of(end))) read_from(end);
  // The caller has left and is not being read: the remaining bytes have no receiver.
  else if (is_gone && end == &joint->caller) joint->is_over = true;
  if (joint->is_over) {
    close_end(epoll, &joint->caller);
    if (joint->guest.is_watched) epoll_ctl(epoll, EPOLL_CTL_DEL, joint->guest.socket, NULL);
    joint->guest.is_watched = false;
    return;
  }
  watch(epoll, &joint->caller);
  watch(epoll, &joint->guest);
}
