#include "confine/own-network.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "ipv6.h"

static int open_current(struct failure *failure) {
  int namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  return namespace < 0 ? fail(failure, "open the network namespace") : namespace;
}

static int enter(int namespace, struct failure *failure) {
  return setns(namespace, CLONE_NEWNET) == 0 ? 0 : fail(failure, "enter a network namespace");
}

/** In the namespace of the host. The kernel removes the link of an ended process some time later; its name is needed now. */
static int link_host(const struct link_plan *plan, int own, struct failure *failure) {
  if (delete_link(plan->host_interface, failure) < 0) return -1;
  if (create_link(plan, own, failure) < 0) return -1;
  return configure_host_end(plan, failure);
}

static int link_both(const struct link_plan *plan, int host, int own, struct failure *failure) {
  // Before the interface exists, so that it has no address that is not in the plan.
  if (set_ipv6_of_new_interfaces(false, failure) < 0) return -1;
  if (enter(host, failure) < 0 || link_host(plan, own, failure) < 0 || enter(own, failure) < 0) return -1;
  return configure_guest_end(plan, failure);
}

int enter_own_network(const struct link_plan *plan, struct failure *failure) {
  int host = open_current(failure);
  if (host < 0) return -1;
  int own = -1, outcome = -1;
  if (unshare(CLONE_NEWNET) < 0) fail(failure, "make a network namespace");
  else if ((own = open_current(failure)) >= 0) outcome = link_both(plan, host, own, failure);
  if (own >= 0) close(own);
  close(host);
  return outcome;
}
