/**
 * What a guest can say over IPv6 on its own link: `ipv6-attacks WHAT INTERFACE [ADDRESS…]`. Prints a line for each thing it tried:
 * its name, and `ok` or the name of the error. The host has to drop what is `ok` here.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FREEBIND = 78, DISCARD = 9, GROUPS = 5000 };

static unsigned interface;

static struct sockaddr_in6 place(const char *address, uint16_t port) {
  struct sockaddr_in6 result = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  inet_pton(AF_INET6, address, &result.sin6_addr);
  result.sin6_scope_id = interface;
  return result;
}

static void report(const char *name, long result) { printf("%s %s\n", name, result < 0 ? strerrorname_np(errno) : "ok"); }

/** A datagram under an address of another sandbox. Binding to it needs no right. */
static void forge(const char *from, const char *to) {
  int fd = socket(AF_INET6, SOCK_DGRAM, 0), yes = 1;
  struct sockaddr_in6 source = place(from, 0), target = place(to, DISCARD);
  setsockopt(fd, IPPROTO_IPV6, FREEBIND, &yes, sizeof yes);
  long result = bind(fd, (void *)&source, sizeof source);
  if (result == 0) result = sendto(fd, "x", 1, 0, (void *)&target, sizeof target);
  report(from, result);
  close(fd);
}

/** Everything of neighbour discovery and multicast groups, to all on the link and to the gateway. */
static void advertise(const char *gateway) {
  static const uint8_t kinds[] = {130, 131, 132, 133, 134, 135, 136, 137, 143};
  const char *targets[] = {"ff02::1", gateway};
  int fd = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), hops = 255;
  if (fd < 0) return report("raw", -1);
  setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops);
  setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof hops);
  for (size_t i = 0; i < sizeof kinds * 2; i++) {
    struct sockaddr_in6 target = place(targets[i % 2], 0);
    uint8_t message[32] = {kinds[i / 2]};
    char name[16];
    snprintf(name, sizeof name, "type%d", kinds[i / 2]);
    report(name, sendto(fd, message, sizeof message, 0, (void *)&target, sizeof target));
  }
  close(fd);
}

/** So many addresses that a table of neighbours has no room for them: groups, and possible neighbours. */
static void flood(void) {
  int fd = socket(AF_INET6, SOCK_DGRAM, 0);
  for (int i = 0; i < GROUPS * 2; i++) {
    char address[INET6_ADDRSTRLEN];
    snprintf(address, sizeof address, "%s::%x:%x", i % 2 ? "ff02" : "fe80", i >> 8, i & 255);
    struct sockaddr_in6 target = place(address, DISCARD);
    sendto(fd, "x", 1, MSG_DONTWAIT, (void *)&target, sizeof target);
  }
  report("flood", 0);
  close(fd);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  interface = if_nametoindex(argv[2]);
  if (!strcmp(argv[1], "forge"))
    for (int i = 4; i < argc; i++) forge(argv[i], argv[3]);
  else if (!strcmp(argv[1], "advertise")) advertise(argv[3]);
  else flood();
  return 0;
}
