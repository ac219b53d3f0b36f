#ifndef SVC_LINK_H
#define SVC_LINK_H

#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"

/**
 * The link of a sandbox or a proxy: `host_interface` here, `eth0` with `address`/32 and `mac` there, all traffic via `gateway`. With IPv6 also
 * `address6`/128, via `gateway6`; each end has a neighbour entry with the other's MAC.
 */
struct link_plan {
  const char *host_interface;
  struct in_addr address;
  struct in_addr gateway;
  uint32_t mtu;
  uint8_t mac[ETH_ALEN];
  bool has_ipv6;
  struct in6_addr address6;
  struct in6_addr gateway6;
};

enum { LINK_ARGUMENTS = 5, LINK_ARGUMENTS_WITH_IPV6 = 7 };

int parse_link_plan(const char *const *arguments, size_t count, struct link_plan *plan, struct failure *failure);
int check_interface_name(const char *name, struct failure *failure);

/** Makes the pair, its other end as `eth0` in the network namespace that the descriptor `peer` is open on. Both ends stay down. */
int create_link(const struct link_plan *plan, int peer, struct failure *failure);
/** The host's end: answers for `gateway`, up, routes to the addresses; IPv6 off unless planned. */
int configure_host_end(const struct link_plan *plan, struct failure *failure);
/** Inside the other network namespace: lo up, and with a plan eth0, which has no IPv6, with its address and routes. */
int configure_guest_end(const struct link_plan *plan, struct failure *failure);
/** Succeeds when the interface is missing. */
int delete_link(const char *name, struct failure *failure);

#endif
