#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/capabilities.h"
#include "confine/filter.h"
#include "idmap.h"
#include "namespaces.h"
#include "request.h"
#include "resident.h"

struct plan {
  struct id_range ids;
  bool may_have_host_ids;
  uint64_t capabilities;
  bool has_network;
  uint32_t folder_count;
  char **folders;
  char **command;
};

/** As a shell does for a program that it cannot run. */
enum { CANNOT_RUN = 126, LEAST_ARGUMENTS = 5, LOWEST_OWN_ID = 0x100000, MAX_FOLDERS = 16 };

/** The upper half of all ids is unused: container engines do not allocate from it either. The last two ids mean none. */
static const struct id_range any_ids = {0, 0x80000000, 0x7ffffffe};
static const struct id_range host_ids = {0, 0, UINT32_MAX};

static int parse_plan(int count, char **words, struct plan *plan, struct failure *failure) {
  if (count < LEAST_ARGUMENTS) return fail_with(failure, EINVAL, "too few arguments");
  plan->may_have_host_ids = strcmp(words[0], "any") == 0;
  plan->ids = plan->may_have_host_ids ? any_ids : (struct id_range){0, 0, IDS_PER_SANDBOX};
  if (!plan->may_have_host_ids && parse_number(words[0], LOWEST_OWN_ID, INT32_MAX, &plan->ids.outside, failure) < 0) return -1;
  char *end;
  plan->capabilities = strtoull(words[1], &end, 16);
  if (*words[1] == '\0' || *end != '\0') return fail_with(failure, EINVAL, "capabilities are a mask in hex");
  if (parse_flag(words[2], &plan->has_network, failure) < 0) return -1;
  // One argument at least is left for the program.
  if (parse_number(words[3], 0, (uint32_t)count - LEAST_ARGUMENTS, &plan->folder_count, failure) < 0) return -1;
  if (plan->folder_count > MAX_FOLDERS) return fail_with(failure, EINVAL, "too many folders");
  plan->folders = words + 4;
  plan->command = words + 4 + plan->folder_count;
  return 0;
}

static int open_own_namespace(struct id_range range, struct failure *failure) {
  struct resident resident = {0};
  const struct new_namespaces namespaces = {.kinds = CLONE_NEWUSER, .owner = range.outside};
  if (start_resident(&resident, &namespaces, wait_inside, NULL, failure) < 0) return -1;
  struct id_ranges ids = {.ranges = {range}, .count = 1};
  int namespace = -1;
  if (write_maps(&resident, &ids, &ids, failure) == 0) namespace = open_namespace(&resident, "user", failure);
  end_resident(&resident);
  return namespace;
}

/** Copies of the folders through the mapping; how many it made, or -1 and none. */
static int map_folders(const struct plan *plan, int namespace, int mounts[MAX_FOLDERS], struct failure *failure) {
  for (uint32_t i = 0; i < plan->folder_count; i++) {
    mounts[i] = clone_mount(AT_FDCWD, plan->folders[i], failure);
    if (mounts[i] >= 0 && map_ids(mounts[i], namespace, failure) == 0) continue;
    for (uint32_t j = 0; j <= i; j++) close(mounts[j]);
    return -1;
  }
  return (int)plan->folder_count;
}

/** The mapped views take the place of the folders, in the mount namespace that goes with this process. Returns the user namespace. */
static int show_folders(const struct plan *plan, struct failure *failure) {
  int namespace = open_own_namespace(plan->ids, failure);
  if (namespace < 0) return -1;
  int mounts[MAX_FOLDERS];
  int count = map_folders(plan, namespace, mounts, failure);
  if (count < 0) {
    close(namespace);
    return plan->may_have_host_ids ? open_own_namespace(host_ids, failure) : -1;
  }
  for (int i = 0; i < count; i++) {
    if (attach_mount(mounts[i], plan->folders[i], failure) < 0) return -1;
    close(mounts[i]);
  }
  return namespace;
}

/** SAFETY: kernel settings are protected by the owner of their files, not by capabilities: with the host's ids the program could write them. */
static int protect_settings(struct failure *failure) {
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return mount(NULL, "/proc", NULL, flags, NULL) == 0 ? 0 : fail(failure, "make /proc read-only");
}

/** What works for one tenant ends before what serves all, should memory run out. */
static int end_first(struct failure *failure) {
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return fail(failure, "open the kernel's order of victims");
  int outcome = write(file, "1000", 4) == 4 ? 0 : fail(failure, "be the first to end");
  close(file);
  return outcome;
}

static int enter(const struct plan *plan, struct failure *failure) {
  char folder[4096];
  if (getcwd(folder, sizeof folder) == NULL) return fail(failure, "find the working folder");
  int namespace = show_folders(plan, failure);
  if (namespace < 0) return -1;
  if (end_first(failure) < 0 || protect_settings(failure) < 0) return -1;
  if (setns(namespace, CLONE_NEWUSER) < 0) return fail(failure, "enter the user namespace");
  if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0) return fail(failure, "become another user");
  // The same folder through the mapping.
  return chdir(folder) == 0 ? 0 : fail(failure, "enter the working folder");
}

static int give_up_rights(const struct plan *plan, struct failure *failure) {
  struct rlimit no_core = {0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) < 0) return fail(failure, "forgo core files");
  if (syscall(SYS_close_range, 3, ~0U, 0) < 0) return fail(failure, "close descriptors");
  if (keep_capabilities(plan->capabilities, failure) < 0) return -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail(failure, "forgo new privileges");
  return load_confined_filter(plan->has_network, failure);
}

int confine(int count, char **arguments) {
  struct plan plan = {0};
  struct failure failure = {0};
  if (parse_plan(count, arguments, &plan, &failure) == 0 && enter(&plan, &failure) == 0 && give_up_rights(&plan, &failure) == 0) {
    execvp(plan.command[0], plan.command);
    fail(&failure, "execute the program");
  }
  fprintf(stderr, "svc-host: cannot %s: %s\n", failure.step, strerror(failure.error));
  return CANNOT_RUN;
}
