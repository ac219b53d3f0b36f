#ifndef SVC_JOINT_H
#define SVC_JOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"

enum { MOST_ID_BYTES = 20 };

/** One of two joined connections. */
struct end {
  struct joint *joint;
  // -1 once it is closed.
  int socket;
  // Its epoll events; 0 while it is not watched.
  uint32_t events;
  bool is_watched;
  // It reads nothing any more; bytes that it sent before are still delivered.
  bool is_deaf;
  // Bytes from the other side that this one has not taken yet.
  unsigned char *kept;
  size_t kept_start;
  size_t kept_end;
};

/**
 * A caller's connection and a session of svc-init. Bytes of either are written to the other, with back-pressure.
 * - It is over when the caller leaves, even with undelivered bytes, or when the caller has taken everything that the guest sent.
 * - Then the caller's connection is closed. The guest's stays open until `end_joint`: the engine first tells svc-init the reason.
 */
struct joint {
  struct joint *next;
  bool is_over;
  // The caller has sent data that was not reported yet.
  bool has_said;
  // Monotonic time of the latest such report.
  int64_t told_ms;
  char id[MOST_ID_BYTES];
  struct end caller;
  struct end guest;
};

/** Takes ownership of the sockets, also when it fails. */
struct joint *make_joint(int epoll, const char *id, int caller, int guest, struct failure *failure);

/** Handles an event of `epoll` for one of its sides. */
void forward(int epoll, struct end *end, uint32_t events);

/** Closes both sockets. The caller frees the memory once no pending event refers to it. */
void close_joint(int epoll, struct joint *joint);

#endif
