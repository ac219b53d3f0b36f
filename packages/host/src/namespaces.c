#include "namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "ipv6.h"
#include "resident.h"
#include "unmount.h"

struct setting {
  const char *file, *value;
};

/**
 * Limits of a sandbox for resources that are counted for the host's root as well: without them one sandbox could use all inotify instances
 * of the host.
 */
static const struct setting limits[] = {
    {"/proc/sys/user/max_inotify_instances", "128"},
    {"/proc/sys/user/max_inotify_watches", "65536"},
    {"/proc/sys/user/max_fanotify_groups", "16"},
    {"/proc/sys/user/max_fanotify_marks", "65536"},
};

/** Groups that may send echo requests without a raw socket: all inside. The packet filter decides where to. */
static const struct setting echo_senders = {"/proc/sys/net/ipv4/ping_group_range", "0 65535"};

/** A kernel that does not have something has no file for it. */
static int apply(const struct setting *setting, struct failure *failure) {
  int fd = open(setting->file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : fail(failure, "open %s", setting->file);
  ssize_t length = (ssize_t)strlen(setting->value), written = write(fd, setting->value, (size_t)length);
  if (written != length) fail(failure, "write %s", setting->file);
  close(fd);
  return written == length ? 0 : -1;
}

/** Inside, where these files are those of the new namespaces. */
static int apply_settings(struct failure *failure) {
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    if (apply(&limits[i], failure) < 0) return -1;
  }
  return apply(&echo_senders, failure);
}

static bool answer_outside(int channel, const struct failure *failure) {
  return write(channel, failure, sizeof *failure) == sizeof *failure;
}

/**
 * Inside: turns IPv6 off before there is an interface and says so, waits for one byte (the link exists), configures its side, answers,
 * waits for the end.
 */
static void configure_inside(int channel, const void *context) {
  struct failure failure = {0};
  char go;
  set_ipv6_of_new_interfaces(false, &failure);
  if (!answer_outside(channel, &failure) || read(channel, &go, 1) != 1) return;
  // What else the guest makes, if it may, is as it is everywhere.
  if (set_ipv6_of_new_interfaces(true, &failure) == 0 && apply_settings(&failure) == 0) configure_guest_end(context, &failure);
  if (answer_outside(channel, &failure)) wait_inside(channel, NULL);
}

/** What it answers: a struct failure. */
static int hear(const struct resident *resident, struct failure *failure) {
  struct failure answer = {0};
  size_t length = 0;
  while (length < sizeof answer) {
    ssize_t got = read(resident->channel, (char *)&answer + length, sizeof answer - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(failure, "hear from the new namespace");
    if (got == 0) return fail_with(failure, ECHILD, "hear from the new namespace");
    length += (size_t)got;
  }
  return answer.error == 0 ? 0 : fail_with(failure, answer.error, "%s", answer.step);
}

/** The guest's side is configured by the resident while this process configures the host's side. */
static int wire_up(const struct resident *resident, const struct link_plan *link, struct failure *failure) {
  if (write(resident->channel, "g", 1) != 1) return fail(failure, "tell the new namespace to go on");
  if (link != NULL && configure_host_end(link, failure) < 0) return -1;
  return hear(resident, failure);
}

static int pin(const struct resident *resident, const char *kind, const char *path, struct failure *failure) {
  char source[64];
  snprintf(source, sizeof source, "/proc/%d/ns/%s", resident->pid, kind);
  int fd = open(path, O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return fail(failure, "make the file that pins the %s namespace", kind);
  close(fd);
  if (mount(source, path, NULL, MS_BIND, NULL) == 0) return 0;
  fail(failure, "pin the %s namespace", kind);
  unlink(path);
  return -1;
}

static int pin_both(const struct resident *resident, const char *user_path, const char *network_path, struct failure *failure) {
  if (pin(resident, "user", user_path, failure) < 0) return -1;
  if (pin(resident, "net", network_path, failure) == 0) return 0;
  struct failure ignored = {0};
  remove_pin(user_path, &ignored);
  return -1;
}

static int create_link_into(const struct resident *resident, const struct link_plan *link, struct failure *failure) {
  int peer = open_namespace(resident, "net", failure);
  if (peer < 0) return -1;
  int outcome = create_link(link, peer, failure);
  close(peer);
  return outcome;
}

static int link_and_pin(const struct resident *resident, const char *user_path, const char *network_path,
                        const struct link_plan *link, struct failure *failure) {
  if (hear(resident, failure) < 0) return -1;
  if (link != NULL && create_link_into(resident, link, failure) < 0) return -1;
  if (wire_up(resident, link, failure) == 0 && pin_both(resident, user_path, network_path, failure) == 0) return 0;
  // The pair would go with the namespace, but only some time after this call; a repeat needs the name free now.
  struct failure ignored = {0};
  if (link != NULL) delete_link(link->host_interface, &ignored);
  return -1;
}

int create_namespaces(const char *user_path, const char *network_path, uint32_t id_base, const struct link_plan *link,
                      struct failure *failure) {
  struct resident resident = {0};
  // Owned by the sandbox's own root, not the host's: the kernel counts timers, signals and queues for the owner as well, and one
  // sandbox at its limit would leave none to the others and to the host.
  const struct new_namespaces namespaces = {.kinds = CLONE_NEWUSER | CLONE_NEWNET, .owner = id_base};
  if (start_resident(&resident, &namespaces, configure_inside, link, failure) < 0) return -1;
  // SAFETY: the range contains none of the host's own ids; the caller checked the lower bound.
  struct id_ranges ids = {.ranges = {{0, id_base, IDS_PER_SANDBOX}}, .count = 1};
  int outcome = write_maps(&resident, &ids, &ids, failure);
  if (outcome == 0) outcome = link_and_pin(&resident, user_path, network_path, link, failure);
  end_resident(&resident);
  return outcome;
}

int remove_pin(const char *path, struct failure *failure) {
  if (unmount_all(path, failure) < 0) return -1;
  if (unlink(path) < 0 && errno != ENOENT) return fail(failure, "delete the pin");
  return 0;
}
