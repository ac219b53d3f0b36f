#ifndef SVC_ADDRESS_H
#define SVC_ADDRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESSES_MAX = 8, ADDRESS_RECORD = 17 };

struct address {
  socklen_t length;
  struct sockaddr_storage at;
};

/** From a record of ADDRESS_RECORD bytes: 4 or 6, then the 4 or 16 bytes of the address. */
struct address address_of(const unsigned char *record, uint16_t port);
/** An IP address in text form (or "localhost") needs no lookup: returns the number of its addresses, 0 for a name. */
size_t resolve_literal(const char *host, uint16_t port, struct address *addresses);

#endif
