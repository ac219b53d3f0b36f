#ifndef SVC_NETLINK_H
#define SVC_NETLINK_H

#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"

/**
 * A batch of route-netlink requests, sent with one system call. Each asks for an acknowledgement; `netlink_send` waits for
 * all of them and fails with the first error. Attributes that do not fit set `overflow`, which `netlink_send` reports.
 */
struct netlink_batch {
  size_t length;
  struct nlmsghdr *last;
  unsigned count;
  int overflow;
  _Alignas(struct nlmsghdr) unsigned char bytes[2048];
};

void netlink_begin(struct netlink_batch *batch);
/** Starts a message whose fixed part is `size` bytes (zeroed); the caller fills it in. Never NULL. */
void *netlink_message(struct netlink_batch *batch, uint16_t type, uint16_t flags, size_t size);
void netlink_attribute(struct netlink_batch *batch, uint16_t type, const void *data, size_t size);
void netlink_number(struct netlink_batch *batch, uint16_t type, uint32_t value);
void netlink_text(struct netlink_batch *batch, uint16_t type, const char *text);
/** Opens a nested attribute; `extra` bytes of zeroed header follow it directly. */
struct rtattr *netlink_nest(struct netlink_batch *batch, uint16_t type, size_t extra);
void netlink_nest_end(struct netlink_batch *batch, struct rtattr *nest);

/** Opens a socket in the network namespace of the calling process. */
int netlink_open(struct failure *failure);
int netlink_send(int socket, const struct netlink_batch *batch, const char *step, struct failure *failure);

#endif
