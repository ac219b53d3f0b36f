#include "link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ipv6.h"
#include "netlink.h"
#include "request.h"

static const char GUEST_INTERFACE[] = "eth0";
enum { IPV6_MIN_MTU = 1280 };

int check_interface_name(const char *name, struct failure *failure) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
  size_t length = strspn(name, allowed);
  if (length == 0 || length >= IFNAMSIZ || name[length] != '\0') {
    return fail_with(failure, EINVAL, "an interface name is not 1 to 15 of a-z, 0-9, -");
  }
  return 0;
}

/** Six pairs of hexadecimal digits with colons between them, of one station and not of a group. */
static int parse_mac(const char *text, uint8_t mac[ETH_ALEN], struct failure *failure) {
  static const char digits[] = "0123456789abcdef";
  static const uint8_t none[ETH_ALEN];
  if (strlen(text) != 3 * ETH_ALEN - 1) return fail_with(failure, EINVAL, "a MAC address is not six bytes");
  for (size_t i = 0; i < ETH_ALEN; i++, text += 3) {
    const char *high = strchr(digits, text[0]), *low = strchr(digits, text[1]);
    bool is_parted = text[2] == (i + 1 < ETH_ALEN ? ':' : '\0');
    if (high == NULL || low == NULL || !is_parted) return fail_with(failure, EINVAL, "a MAC address is not six bytes");
    mac[i] = (uint8_t)((high - digits) << 4 | (low - digits));
  }
  if ((mac[0] & 1) != 0 || memcmp(mac, none, sizeof none) == 0) {
    return fail_with(failure, EINVAL, "a MAC address must be unicast and not zero");
  }
  return 0;
}

int parse_link_plan(const char *const *arguments, size_t count, struct link_plan *plan, struct failure *failure) {
  if (count != LINK_ARGUMENTS && count != LINK_ARGUMENTS_WITH_IPV6) {
    return fail_with(failure, EINVAL, "a link has five parts, or seven with IPv6");
  }
  plan->host_interface = arguments[0];
  if (check_interface_name(arguments[0], failure) < 0) return -1;
  if (inet_pton(AF_INET, arguments[1], &plan->address) != 1) return fail_with(failure, EINVAL, "address is not IPv4");
  if (inet_pton(AF_INET, arguments[2], &plan->gateway) != 1) return fail_with(failure, EINVAL, "gateway is not IPv4");
  if (parse_number(arguments[3], 576, 65535, &plan->mtu, failure) < 0) return -1;
  if (parse_mac(arguments[4], plan->mac, failure) < 0) return -1;
  plan->has_ipv6 = count == LINK_ARGUMENTS_WITH_IPV6;
  if (!plan->has_ipv6) return 0;
  if (plan->mtu < IPV6_MIN_MTU) return fail_with(failure, EINVAL, "IPv6 needs an MTU of 1280");
  if (inet_pton(AF_INET6, arguments[5], &plan->address6) != 1) return fail_with(failure, EINVAL, "address is not IPv6");
  if (inet_pton(AF_INET6, arguments[6], &plan->gateway6) != 1) return fail_with(failure, EINVAL, "gateway is not IPv6");
  return 0;
}

/** The MAC address of the host's end, fixed so that neither end has to ask for it. */
static void host_mac(const struct link_plan *plan, uint8_t mac[ETH_ALEN]) {
  memcpy(mac, plan->mac, ETH_ALEN);
  mac[ETH_ALEN - 1] ^= 1;
}

int create_link(const struct link_plan *plan, int peer, struct failure *failure) {
  struct netlink_batch batch;
  netlink_begin(&batch);
  struct ifinfomsg *host = netlink_message(&batch, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof *host);
  host->ifi_family = AF_UNSPEC;
  netlink_text(&batch, IFLA_IFNAME, plan->host_interface);
  netlink_number(&batch, IFLA_MTU, plan->mtu);
  uint8_t own[ETH_ALEN];
  host_mac(plan, own);
  if (plan->has_ipv6) netlink_attribute(&batch, IFLA_ADDRESS, own, sizeof own);
  struct rtattr *info = netlink_nest(&batch, IFLA_LINKINFO, 0);
  netlink_text(&batch, IFLA_INFO_KIND, "veth");
  struct rtattr *data = netlink_nest(&batch, IFLA_INFO_DATA, 0);
  struct rtattr *end = netlink_nest(&batch, VETH_INFO_PEER, sizeof(struct ifinfomsg));
  netlink_text(&batch, IFLA_IFNAME, GUEST_INTERFACE);
  netlink_number(&batch, IFLA_MTU, plan->mtu);
  netlink_attribute(&batch, IFLA_ADDRESS, plan->mac, sizeof plan->mac);
  netlink_number(&batch, IFLA_NET_NS_FD, (uint32_t)peer);
  netlink_nest_end(&batch, end);
  netlink_nest_end(&batch, data);
  netlink_nest_end(&batch, info);

  int socket = netlink_open(failure);
  if (socket < 0) return -1;
  int outcome = netlink_send(socket, &batch, "make the veth pair", failure);
  close(socket);
  return outcome;
}

static void add_up(struct netlink_batch *batch, int index) {
  struct ifinfomsg *link = netlink_message(batch, RTM_NEWLINK, 0, sizeof *link);
  link->ifi_family = AF_UNSPEC;
  link->ifi_index = index;
  link->ifi_flags = IFF_UP;
  link->ifi_change = IFF_UP;
}

static void add_address(struct netlink_batch *batch, int index, struct in_addr address, uint8_t scope) {
  struct ifaddrmsg *message = netlink_message(batch, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof *message);
  message->ifa_family = AF_INET;
  message->ifa_prefixlen = 32;
  message->ifa_scope = scope;
  message->ifa_index = (uint32_t)index;
  netlink_attribute(batch, IFA_LOCAL, &address, sizeof address);
  netlink_attribute(batch, IFA_ADDRESS, &address, sizeof address);
}

/** With `to` a link-scope route to that one address, without it the default route through `via`. */
static void add_route(struct netlink_batch *batch, int index, const struct in_addr *to, const struct in_addr *via) {
  struct rtmsg *route = netlink_message(batch, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, sizeof *route);
  route->rtm_family = AF_INET;
  route->rtm_table = RT_TABLE_MAIN;
  route->rtm_protocol = RTPROT_STATIC;
  route->rtm_type = RTN_UNICAST;
  route->rtm_scope = to != NULL ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  if (to != NULL) {
    route->rtm_dst_len = 32;
    netlink_attribute(batch, RTA_DST, to, sizeof *to);
  }
  if (via != NULL) netlink_attribute(batch, RTA_GATEWAY, via, sizeof *via);
  netlink_number(batch, RTA_OIF, (uint32_t)index);
}

static void add_address6(struct netlink_batch *batch, int index, const struct in6_addr *address) {
  struct ifaddrmsg *message = netlink_message(batch, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof *message);
  message->ifa_family = AF_INET6;
  message->ifa_prefixlen = 128;
  message->ifa_scope = RT_SCOPE_UNIVERSE;
  // No other host is on the link that could have it.
  message->ifa_flags = IFA_F_NODAD;
  message->ifa_index = (uint32_t)index;
  netlink_attribute(batch, IFA_LOCAL, address, sizeof *address);
  netlink_attribute(batch, IFA_ADDRESS, address, sizeof *address);
}

/** As `add_route`. */
static void add_route6(struct netlink_batch *batch, int index, const struct in6_addr *to, const struct in6_addr *via) {
  struct rtmsg *route = netlink_message(batch, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, sizeof *route);
  route->rtm_family = AF_INET6;
  route->rtm_table = RT_TABLE_MAIN;
  route->rtm_protocol = RTPROT_STATIC;
  route->rtm_type = RTN_UNICAST;
  route->rtm_scope = RT_SCOPE_UNIVERSE;
  if (to != NULL) {
    route->rtm_dst_len = 128;
    netlink_attribute(batch, RTA_DST, to, sizeof *to);
  }
  if (via != NULL) netlink_attribute(batch, RTA_GATEWAY, via, sizeof *via);
  netlink_number(batch, RTA_OIF, (uint32_t)index);
}

/** Adds a permanent neighbour entry: the packet filter drops ARP and neighbour discovery. */
static void add_neighbour6(struct netlink_batch *batch, int index, const struct in6_addr *address, const uint8_t mac[ETH_ALEN]) {
  struct ndmsg *neighbour = netlink_message(batch, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof *neighbour);
  neighbour->ndm_family = AF_INET6;
  neighbour->ndm_ifindex = index;
  neighbour->ndm_state = NUD_PERMANENT;
  netlink_attribute(batch, NDA_DST, address, sizeof *address);
  netlink_attribute(batch, NDA_LLADDR, mac, ETH_ALEN);
}

static int send_batch(const struct netlink_batch *batch, const char *step, struct failure *failure) {
  int socket = netlink_open(failure);
  if (socket < 0) return -1;
  int outcome = netlink_send(socket, batch, step, failure);
  close(socket);
  return outcome;
}

int configure_host_end(const struct link_plan *plan, struct failure *failure) {
  int set = plan->has_ipv6 ? enable_ipv6(plan->host_interface, failure) : disable_ipv6(plan->host_interface, failure);
  if (set < 0) return -1;
  int index = (int)if_nametoindex(plan->host_interface);
  if (index == 0) return fail(failure, "find the host end of the link");
  struct netlink_batch batch;
  netlink_begin(&batch);
  // Every host end carries the gateway's address, or the guest's ARP request for it would not be answered.
  add_address(&batch, index, plan->gateway, RT_SCOPE_LINK);
  add_up(&batch, index);
  add_route(&batch, index, &plan->address, NULL);
  if (plan->has_ipv6) {
    add_route6(&batch, index, &plan->address6, NULL);
    add_neighbour6(&batch, index, &plan->address6, plan->mac);
  }
  return send_batch(&batch, "configure the host end of the link", failure);
}

static void add_guest_ipv6(struct netlink_batch *batch, int index, const struct link_plan *plan) {
  uint8_t other[ETH_ALEN];
  host_mac(plan, other);
  add_address6(batch, index, &plan->address6);
  add_route6(batch, index, &plan->gateway6, NULL);
  add_route6(batch, index, NULL, &plan->gateway6);
  add_neighbour6(batch, index, &plan->gateway6, other);
}

int configure_guest_end(const struct link_plan *plan, struct failure *failure) {
  struct netlink_batch batch;
  netlink_begin(&batch);
  int loopback = (int)if_nametoindex("lo");
  if (loopback == 0) return fail(failure, "find the loopback interface");
  add_up(&batch, loopback);
  if (plan != NULL) {
    if (plan->has_ipv6 && enable_ipv6(GUEST_INTERFACE, failure) < 0) return -1;
    int index = (int)if_nametoindex(GUEST_INTERFACE);
    if (index == 0) return fail(failure, "find the guest end of the link");
    add_address(&batch, index, plan->address, RT_SCOPE_UNIVERSE);
    add_up(&batch, index);
    add_route(&batch, index, &plan->gateway, NULL);
    add_route(&batch, index, NULL, &plan->gateway);
    if (plan->has_ipv6) add_guest_ipv6(&batch, index, plan);
  }
  return send_batch(&batch, "configure the guest end of the link", failure);
}

int delete_link(const char *name, struct failure *failure) {
  struct netlink_batch batch;
  netlink_begin(&batch);
  struct ifinfomsg *link = netlink_message(&batch, RTM_DELLINK, 0, sizeof *link);
  link->ifi_family = AF_UNSPEC;
  netlink_text(&batch, IFLA_IFNAME, name);
  struct failure attempt = {0};
  if (send_batch(&batch, "delete the link", &attempt) == 0 || attempt.error == ENODEV) return 0;
  return fail_with(failure, attempt.error, "delete the link");
}
