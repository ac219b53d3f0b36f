#include "bind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "idmap.h"
#include "serve/mount-served.h"

/** The kernel returns EAGAIN when a folder on the path was renamed meanwhile. */
enum { MAX_ATTEMPTS = 128 };

static int open_inside(const struct bind_plan *plan, struct failure *failure) {
  int root = open(plan->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (root < 0) return fail(failure, "open the root of the bind");
  // SAFETY: a guest may have planted symlinks below root and may swap them now; RESOLVE_IN_ROOT keeps them inside.
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

/** `disk_owner`: the owner of the folder on the host. */
static struct owner_map map_for(const struct bind_plan *plan, uint32_t disk_owner, uint32_t shown) {
  bool is_volume = plan->stored_as == STORED_AS_VOLUME;
  return (struct owner_map){
      .id_base = plan->id_base,
      .disk_base = is_volume ? 0 : plan->id_base,
      .disk_owner = is_volume ? 0 : disk_owner,
      .shown = shown,
  };
}

static int open_mapping(const struct bind_plan *plan, const struct stat *status, struct failure *failure) {
  if (plan->stored_as != STORED_AS_GUEST) {
    struct owner_map users = map_for(plan, status->st_uid, plan->owner_uid);
    struct owner_map groups = map_for(plan, status->st_gid, plan->owner_gid);
    return open_mapping_namespace(&users, &groups, failure);
  }
  int namespace = open(plan->user_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  return namespace < 0 ? fail(failure, "open the user namespace") : namespace;
}

static int map_mount(int mount, const struct bind_plan *plan, const struct stat *status, struct failure *failure) {
  if (plan->user_path == NULL) return 0;
  int namespace = open_mapping(plan, status, failure);
  if (namespace < 0) return -1;
  int outcome = map_ids(mount, namespace, failure);
  close(namespace);
  return outcome;
}

/**
 * SAFETY: a guest that writes as a user of the host could leave a set-user-id program of that user there. No mount option prevents
 * it, because the host sees the folder through its own mounts; the server does.
 */
static bool has_to_be_served(const struct bind_plan *plan) {
  if (plan->readonly || plan->user_path == NULL) return false;
  return plan->quota_mib > 0 || plan->stored_as == STORED_AS_FOLDER;
}

static bool can_only_be_served(const struct bind_plan *plan, const struct failure *failure) {
  return plan->stored_as == STORED_AS_FOLDER && failure->error == EOPNOTSUPP;
}

static int serve_mount(int mount, const struct bind_plan *plan, const struct stat *status, struct failure *failure) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", mount);
  // The descriptor of a detached mount is O_PATH; handles are opened through a readable one, which refers to the same folder.
  int source = open(path, O_RDONLY | O_CLOEXEC);
  if (source < 0) return fail(failure, "open the folder");
  struct serve_plan serve = {
      .source = source,
      .users = map_for(plan, status->st_uid, plan->owner_uid),
      .groups = map_for(plan, status->st_gid, plan->owner_gid),
      .quota_mib = plan->quota_mib,
      // Files of a volume have the guest's attributes themselves; a read-only bind shows those of the host.
      .overlay = plan->stored_as == STORED_AS_FOLDER && !plan->readonly ? plan->overlay : (struct stat_plan){STAT_OFF, false},
  };
  int served = mount_served(&serve, failure);
  close(source);
  return served;
}

/** A detached mount of the opened folder or file, ready to be attached. */
static int make_mount(int fd, const struct bind_plan *plan, const struct stat *status, struct failure *failure) {
  int mount = clone_mount(fd, "", failure);
  if (mount < 0) return -1;
  uint64_t noexec = plan->noexec ? MOUNT_ATTR_NOEXEC : 0;
  uint64_t attributes = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | noexec | (plan->readonly ? MOUNT_ATTR_RDONLY : 0);
  int ready = -1;
  if (restrict_mount(mount, attributes, failure) == 0) {
    bool is_served = has_to_be_served(plan);
    if (!is_served && map_mount(mount, plan, status, failure) == 0) ready = mount;
    if (is_served || can_only_be_served(plan, failure)) {
      *failure = (struct failure){0};
      ready = serve_mount(mount, plan, status, failure);
    }
  }
  if (ready != mount) close(mount);
  // The served mount is a new one, still without noexec.
  if (ready >= 0 && ready != mount && noexec != 0 && restrict_mount(ready, noexec, failure) < 0) {
    close(ready);
    return -1;
  }
  return ready;
}

static int bind_opened(int fd, const struct bind_plan *plan, const char **kind, struct failure *failure) {
  struct stat status;
  if (fstat(fd, &status) < 0) return fail(failure, "inspect the path of the bind");
  bool directory = S_ISDIR(status.st_mode);
  if (!directory && !S_ISREG(status.st_mode)) return fail_with(failure, EINVAL, "the path is neither file nor directory");
  int mount = make_mount(fd, plan, &status, failure);
  if (mount < 0) return -1;
  int outcome = make_target(plan->target, directory, failure);
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
