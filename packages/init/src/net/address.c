#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

struct address address_of(const unsigned char *record, uint16_t port) {
  struct address address = {0};
  if (record[0] == 4) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address.at;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&v4->sin_addr, record + 1, 4);
    address.length = sizeof *v4;
  } else {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address.at;
    *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&v6->sin6_addr, record + 1, 16);
    address.length = sizeof *v6;
  }
  return address;
}

size_t resolve_literal(const char *host, uint16_t port, struct address *addresses) {
  unsigned char record[ADDRESS_RECORD] = {4, 127, 0, 0, 1};
  if (!strcmp(host, "localhost")) {
    addresses[0] = address_of(record, port);
    memcpy(record, (unsigned char[ADDRESS_RECORD]){[0] = 6, [16] = 1}, ADDRESS_RECORD);
    addresses[1] = address_of(record, port);
    return 2;
  }
  if (inet_pton(AF_INET, host, record + 1) == 1) record[0] = 4;
  else if (inet_pton(AF_INET6, host, record + 1) == 1) record[0] = 6;
  else return 0;
  addresses[0] = address_of(record, port);
  return 1;
}
