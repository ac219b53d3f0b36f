#ifndef SVC_RESOLVE_H
#define SVC_RESOLVE_H

#include "loop/children.h"
#include "loop/loop.h"
#include "net/address.h"

/**
 * Finds the addresses of a name as the sandbox sees it: /etc/hosts, then the servers of /etc/resolv.conf. Done in a
 * child process: answers come from the network, and nothing that parses them runs inside PID 1.
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
