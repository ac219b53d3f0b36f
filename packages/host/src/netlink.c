#include "netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/** The kernel answers before sendto returns; the time-out is for bugs only. */
enum { ANSWER_TIMEOUT_SECONDS = 10 };

void netlink_begin(struct netlink_batch *batch) { memset(batch, 0, sizeof *batch); }

/** Space for `size` bytes at the end; when there is none, a scratch buffer that is never sent. */
static void *take(struct netlink_batch *batch, size_t size) {
  size_t aligned = NLMSG_ALIGN(size);
  if (batch->overflow || aligned > sizeof batch->bytes - batch->length) {
    batch->overflow = 1;
    batch->length = 0;
    batch->last = (struct nlmsghdr *)(void *)batch->bytes;
    return batch->bytes;
  }
  void *space = batch->bytes + batch->length;
  batch->length += aligned;
  if (batch->last != NULL) batch->last->nlmsg_len += (uint32_t)aligned;
  return space;
}

void *netlink_message(struct netlink_batch *batch, uint16_t type, uint16_t flags, size_t size) {
  batch->last = NULL;
  struct nlmsghdr *header = take(batch, NLMSG_LENGTH(size));
  if (batch->overflow) return NLMSG_DATA(header);
  header->nlmsg_len = (uint32_t)NLMSG_ALIGN(NLMSG_LENGTH(size));
  header->nlmsg_type = type;
  header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
  header->nlmsg_seq = ++batch->count;
  batch->last = header;
  return NLMSG_DATA(header);
}

void netlink_attribute(struct netlink_batch *batch, uint16_t type, const void *data, size_t size) {
  struct rtattr *attribute = take(batch, RTA_LENGTH(size));
  if (batch->overflow) return;
  attribute->rta_type = type;
  attribute->rta_len = (unsigned short)RTA_LENGTH(size);
  memcpy(RTA_DATA(attribute), data, size);
}

void netlink_number(struct netlink_batch *batch, uint16_t type, uint32_t value) {
  netlink_attribute(batch, type, &value, sizeof value);
}

void netlink_text(struct netlink_batch *batch, uint16_t type, const char *text) {
  netlink_attribute(batch, type, text, strlen(text) + 1);
}

struct rtattr *netlink_nest(struct netlink_batch *batch, uint16_t type, size_t extra) {
  struct rtattr *nest = take(batch, RTA_LENGTH(extra));
  if (batch->overflow) return nest;
  nest->rta_type = type;
  nest->rta_len = (unsigned short)RTA_LENGTH(extra);
  return nest;
}

void netlink_nest_end(struct netlink_batch *batch, struct rtattr *nest) {
  if (batch->overflow) return;
  nest->rta_len = (unsigned short)(batch->bytes + batch->length - (unsigned char *)nest);
}

int netlink_open(struct failure *failure) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return fail(failure, "open a netlink socket");
  struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_SECONDS};
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  // Acknowledgements need not contain our request.
  setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  return fd;
}

int netlink_send(int socket, const struct netlink_batch *batch, const char *step, struct failure *failure) {
  if (batch->overflow) return fail_with(failure, EMSGSIZE, "%s", step);
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  if (sendto(socket, batch->bytes, batch->length, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0) {
    return fail(failure, "%s", step);
  }
  _Alignas(struct nlmsghdr) unsigned char answer[8192];
  int outcome = 0;
  for (unsigned answered = 0; answered < batch->count;) {
    ssize_t received = recv(socket, answer, sizeof answer, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return fail(failure, "%s", step);
    int length = (int)received;
    for (struct nlmsghdr *header = (void *)answer; NLMSG_OK(header, length); header = NLMSG_NEXT(header, length)) {
      if (header->nlmsg_type != NLMSG_ERROR) continue;
      const struct nlmsgerr *error = NLMSG_DATA(header);
      answered++;
      if (error->error != 0) outcome = fail_with(failure, -error->error, "%s (request %u)", step, header->nlmsg_seq);
    }
  }
  return outcome;
}
