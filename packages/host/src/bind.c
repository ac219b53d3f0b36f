#define _GNU_SOURCE
#include "bind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "idmap.h"

/* The kernel gives up with EAGAIN when a folder on the way was renamed meanwhile. */
enum { MAX_ATTEMPTS = 128 };

static int open_inside(const struct bind_plan *plan, struct failure *failure) {
  int root = open(plan->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (root < 0) return fail(failure, "open the root of the bind");
  /* SAFETY: a guest may have planted symlinks below root and may swap them now; resolved like this they cannot lead outside. */
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
  const char *path = plan->path[0] == '\0' ? "." : plan->path;
  int fd = -1;
  for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  if (fd < 0) fail(failure, "open the path of the bind");
  close(root);
  return fd;
}

static int make_target(const char *target, bool directory, struct failure *failure) {
  if (directory) return mkdir(target, 0700) == 0 || errno == EEXIST ? 0 : fail(failure, "make the target");
  int fd = open(target, O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return errno == EEXIST ? 0 : fail(failure, "make the target");
  close(fd);
  return 0;
}

static int open_mapping(const struct bind_plan *plan, const struct stat *status, struct failure *failure) {
  if (plan->has_owner) {
    struct single_owner owner = {
        .inside_uid = status->st_uid,
        .inside_gid = status->st_gid,
        .outside_uid = plan->id_base + plan->owner_uid,
        .outside_gid = plan->id_base + plan->owner_gid,
    };
    return open_single_owner_namespace(&owner, failure);
  }
  int namespace = open(plan->user_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  return namespace < 0 ? fail(failure, "open the user namespace") : namespace;
}

static int prepare(int mount, const struct bind_plan *plan, const struct stat *status, struct failure *failure) {
  uint64_t attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | (plan->readonly ? MOUNT_ATTR_RDONLY : 0);
  if (restrict_mount(mount, attributes, failure) < 0) return -1;
  if (plan->user_path == NULL) return 0;
  int namespace = open_mapping(plan, status, failure);
  if (namespace < 0) return -1;
  int outcome = map_ids(mount, namespace, failure);
  close(namespace);
  return outcome;
}

static int bind_opened(int fd, const struct bind_plan *plan, const char **kind, struct failure *failure) {
  struct stat status;
  if (fstat(fd, &status) < 0) return fail(failure, "inspect the path of the bind");
  bool directory = S_ISDIR(status.st_mode);
  if (!directory && !S_ISREG(status.st_mode)) return fail_with(failure, EINVAL, "the path is neither file nor directory");
  int mount = clone_mount(fd, "", failure);
  if (mount < 0) return -1;
  int outcome = prepare(mount, plan, &status, failure);
  if (outcome == 0) outcome = make_target(plan->target, directory, failure);
  if (outcome == 0) outcome = attach_mount(mount, plan->target, failure);
  close(mount);
  *kind = directory ? "directory" : "file";
  return outcome;
}

int bind_inside(const struct bind_plan *plan, const char **kind, struct failure *failure) {
  int fd = open_inside(plan, failure);
  if (fd < 0) return -1;
  int outcome = bind_opened(fd, plan, kind, failure);
  close(fd);
  return outcome;
}
