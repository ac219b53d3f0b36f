#include "confine/seclude.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/capabilities.h"
#include "confine/filter.h"
#include "confine/own-network.h"
#include "idmap.h"
#include "request.h"

enum { CANNOT_RUN = 126, MAX_PATHS = 16, PATH_BYTES = 4096 };

/** Where the new root is put together; it hides what is there for this process alone. */
static const char ROOT[] = "/tmp";

/** What it takes to load the program as root, and then to become another user. */
static const uint64_t KEPT = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_DAC_READ_SEARCH;

struct shown {
  const char *path;
  int mount;
};

/** Opened before anything is hidden. */
static int open_shown(struct shown *shown, struct failure *failure) {
  shown->mount = clone_mount(AT_FDCWD, shown->path, failure);
  if (shown->mount < 0) return -1;
  struct mount_attr change = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
  if (syscall(SYS_mount_setattr, shown->mount, "", AT_EMPTY_PATH, &change, sizeof change) == 0) return 0;
  return fail(failure, "make %s read-only", shown->path);
}

static int make_folders(char *path, struct failure *failure) {
  for (char *slash = strchr(path + sizeof ROOT, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    int made = mkdir(path, 0755);
    if (made < 0 && errno != EEXIST) return fail(failure, "make %s", path);
    *slash = '/';
  }
  return 0;
}

/** What the mount is put on: a folder, or a file. */
static int make_place(const struct shown *shown, const char *target, struct failure *failure) {
  struct stat status;
  if (fstat(shown->mount, &status) < 0) return fail(failure, "look at %s", shown->path);
  if (S_ISDIR(status.st_mode)) return mkdir(target, 0755) == 0 || errno == EEXIST ? 0 : fail(failure, "make %s", target);
  int made = mknod(target, S_IFREG | 0644, 0);
  return made == 0 || errno == EEXIST ? 0 : fail(failure, "make %s", target);
}

static int show(const struct shown *shown, struct failure *failure) {
  char target[PATH_BYTES];
  int length = snprintf(target, sizeof target, "%s%s", ROOT, shown->path);
  if (length < 0 || (size_t)length >= sizeof target) return fail_with(failure, ENAMETOOLONG, "show %s", shown->path);
  if (make_folders(target, failure) < 0 || make_place(shown, target, failure) < 0) return -1;
  return attach_mount(shown->mount, target, failure);
}

/** As on every system with one folder of programs. */
static int link_usr(struct failure *failure) {
  static const char *const links[][2] = {{"usr/bin", "bin"}, {"usr/sbin", "sbin"}, {"usr/lib", "lib"}, {"usr/lib64", "lib64"}};
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    if (symlink(links[i][0], links[i][1]) < 0) return fail(failure, "link %s", links[i][1]);
  }
  return 0;
}

/** The new root takes the place of the old one, of which nothing is left. */
static int enter_root(struct failure *failure) {
  if (chdir(ROOT) < 0) return fail(failure, "enter the new root");
  if (link_usr(failure) < 0) return -1;
  if (syscall(SYS_pivot_root, ".", ".") < 0) return fail(failure, "exchange the root");
  if (umount2(".", MNT_DETACH) < 0) return fail(failure, "let go of the old root");
  if (chdir("/") < 0) return fail(failure, "enter the root");
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return mount(NULL, "/", NULL, flags, NULL) == 0 ? 0 : fail(failure, "make the root read-only");
}

static int show_only(char **paths, uint32_t count, struct failure *failure) {
  struct shown shown[MAX_PATHS];
  for (uint32_t i = 0; i < count; i++) {
    shown[i].path = paths[i];
    if (open_shown(&shown[i], failure) < 0) return -1;
  }
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0) return fail(failure, "leave the namespaces of the host");
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) return fail(failure, "keep mounts to itself");
  if (mount("root", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k") < 0) return fail(failure, "make a new root");
  for (uint32_t i = 0; i < count; i++) {
    if (show(&shown[i], failure) < 0) return -1;
  }
  return enter_root(failure);
}

static int give_up_rights(bool chooses_address, struct failure *failure) {
  if (keep_capabilities(KEPT, failure) < 0) return -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail(failure, "forgo new privileges");
  return load_server_filter(chooses_address, failure);
}

struct seclusion {
  bool chooses_address, has_link;
  struct link_plan link;
  uint32_t path_count;
  char **paths, **command;
};

/** A number, and as many words behind it with at least one after them. Returns the first of them, or NULL. */
static char **read_list(char **place, char **end, uint32_t most, uint32_t *length, struct failure *failure) {
  if (place >= end || parse_number(*place, 0, most, length, failure) < 0) return NULL;
  return end - place - 1 > (ptrdiff_t)*length ? place + 1 : NULL;
}

static int read_arguments(int count, char **arguments, struct seclusion *plan, struct failure *failure) {
  char **end = arguments + count;
  uint32_t parts;
  if (parse_flag(arguments[0], &plan->chooses_address, failure) < 0) return -1;
  char **link = read_list(arguments + 1, end, LINK_ARGUMENTS_WITH_IPV6, &parts, failure);
  if (link == NULL) return -1;
  plan->has_link = parts > 0;
  if (plan->has_link && parse_link_plan((const char *const *)link, parts, &plan->link, failure) < 0) return -1;
  plan->paths = read_list(link + parts, end, MAX_PATHS, &plan->path_count, failure);
  if (plan->paths == NULL) return -1;
  plan->command = plan->paths + plan->path_count;
  return 0;
}

static int withdraw(const struct seclusion *plan, struct failure *failure) {
  // First, because it needs /proc.
  if (plan->has_link && enter_own_network(&plan->link, failure) < 0) return -1;
  if (plan->path_count > 0 && show_only(plan->paths, plan->path_count, failure) < 0) return -1;
  return give_up_rights(plan->chooses_address, failure);
}

int seclude(int count, char **arguments) {
  struct failure failure = {0};
  struct seclusion plan = {0};
  if (read_arguments(count, arguments, &plan, &failure) < 0) {
    fputs("usage: svc-host --seclude CHOOSES COUNT LINK... COUNT PATH... PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  if (withdraw(&plan, &failure) == 0) {
    /* SAFETY: the engine chooses the program and its arguments, and its environment is what the engine gave this one. */
    execvp(plan.command[0], plan.command);
    fail(&failure, "execute %s", plan.command[0]);
  }
  fprintf(stderr, "svc-host: cannot %s: %s\n", failure.step, strerror(failure.error));
  return CANNOT_RUN;
}
