#ifndef SVC_RESOLVE_H
#define SVC_RESOLVE_H

#include <sys/socket.h>

#include "children.h"
#include "loop.h"

enum { ADDRESSES_MAX = 8 };

struct address {
  socklen_t length;
  struct sockaddr_storage at;
};

/**
 * Finds the addresses of a name as the sandbox sees it: /etc/hosts, then the servers of /etc/resolv.conf. Done in a
 * child process: answers come from the network, and nothing that parses them runs inside PID 1.
 */
struct resolution {
  struct child child;
  struct watch pipe;
  uint16_t port;
  size_t length;
  unsigned char bytes[ADDRESSES_MAX * 17];
  /** `count` 0: the name was not found. Called once, never from within resolve_start. */
  void (*done)(struct resolution *, const struct address *, size_t count);
};

/** An IP address in text form (or "localhost") needs no lookup: returns how many addresses it is, 0 for a name. */
size_t resolve_literal(const char *host, uint16_t port, struct address *addresses);
/** False when no child could be started. */
bool resolve_start(struct resolution *, const char *host, uint16_t port,
                   void (*done)(struct resolution *, const struct address *, size_t count));
void resolve_cancel(struct resolution *);

/** In the child: writes up to ADDRESSES_MAX records (4 or 6, then 16 bytes) for the name. dns.c */
size_t look_up(const char *host, unsigned char *records);

#endif
