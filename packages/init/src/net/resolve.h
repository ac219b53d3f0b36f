#ifndef SVC_RESOLVE_H
#define SVC_RESOLVE_H

#include "loop/children.h"
#include "loop/loop.h"
#include "net/address.h"

/**
 * Resolves a name as the sandbox would: /etc/hosts, then the servers of /etc/resolv.conf. Runs in a
 * child process: answers come from the network, and PID 1 must not parse them.
 */
struct resolution {
  struct child child;
  struct watch pipe;
  uint16_t port;
  size_t length;
  unsigned char bytes[ADDRESSES_MAX * ADDRESS_RECORD];
  /** `count` 0: the name was not found. Called once, never from within resolve_start. */
  void (*done)(struct resolution *, const struct address *, size_t count);
};

/** False when no child could be started. */
bool resolve_start(struct resolution *, const char *host, uint16_t port,
                   void (*done)(struct resolution *, const struct address *, size_t count));
void resolve_cancel(struct resolution *);

#endif
