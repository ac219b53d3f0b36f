#ifndef SVC_JOINT_H
#define SVC_JOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"

enum { MOST_ID_BYTES = 20 };

/** One of two connections that are joined. */
struct end {
  struct joint *joint;
  // -1 once it is closed.
  int socket;
  // What it is watched for; nothing while it is not watched at all.
  uint32_t events;
  bool is_watched;
  // It takes nothing any more; what it has said still counts.
  bool is_deaf;
  // What was read from the other one and is not taken by this one yet.
  unsigned char *kept;
  size_t kept_start;
  size_t kept_end;
};

/**
 * A caller's connection and a session of svc-init. What arrives at either is written to the other, never faster than that one takes it.
 * - It is over when the caller leaves, whatever still lies there, or when all that the guest said has been taken by the caller.
 * - Then the caller's connection is closed. The guest's is kept until `end_joint`: whoever is told of the end says first to svc-init why.
 */
struct joint {
  struct joint *next;
  bool is_over;
  // The caller has said something, and nobody was told yet.
  bool has_said;
  // Of the monotonic clock: when it was last told that the caller says something.
  int64_t told_ms;
  char id[MOST_ID_BYTES];
  struct end caller;
  struct end guest;
};

/** Takes the sockets over, also when it fails. */
struct joint *make_joint(int epoll, const char *id, int caller, int guest, struct failure *failure);

/** Of `epoll`, for one of its ends. */
void forward(int epoll, struct end *end, uint32_t events);

/** Closes what is open. The memory is the caller's to free, once no event can name it any more. */
void close_joint(int epoll, struct joint *joint);

#endif
