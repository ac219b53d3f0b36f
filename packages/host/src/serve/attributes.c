#include "serve/attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "privileges.h"
#include "serve/stat-overlay.h"

// Reading and changing the attributes of files.

void fill_attributes(const struct stat *status, const struct appearance *shown, struct fuse_attr *attributes) {
  *attributes = (struct fuse_attr){
      .ino = status->st_ino,
      .size = (uint64_t)status->st_size,
      .blocks = (uint64_t)status->st_blocks,
      .atime = (uint64_t)status->st_atim.tv_sec,
      .mtime = (uint64_t)status->st_mtim.tv_sec,
      .ctime = (uint64_t)status->st_ctim.tv_sec,
      .atimensec = (uint32_t)status->st_atim.tv_nsec,
      .mtimensec = (uint32_t)status->st_mtim.tv_nsec,
      .ctimensec = (uint32_t)status->st_ctim.tv_nsec,
      .mode = shown->mode,
      .nlink = (uint32_t)status->st_nlink,
      .uid = shown->uid,
      .gid = shown->gid,
      .blksize = (uint32_t)status->st_blksize,
  };
}

static int answer_attributes(const struct server *server, const struct node *node, int fd, struct reply *reply) {
  struct stat status;
  if (fstat(fd, &status) < 0) return errno;
  struct appearance shown = appearance_of(server, fd, &status, node->key);
  struct fuse_attr_out *out = (struct fuse_attr_out *)reply->data;
  *out = (struct fuse_attr_out){.attr_valid = VALID_SECONDS};
  fill_attributes(&status, &shown, &out->attr);
  reply->length = sizeof *out;
  return 0;
}

int handle_getattr(struct server *server, const struct call *call, struct reply *reply) {
  const struct node *node = node_of(server, call);
  int fd = open_node(server, node, O_PATH);
  if (fd < 0) return errno;
  int error = answer_attributes(server, node, fd, reply);
  close(fd);
  return error;
}

mode_t permitted_mode(mode_t mode) {
  // SAFETY: the host sees these files too, on mounts where the bits take effect, and their owner may be root. POSIX allows to ignore
  // the two bits. On folders set-group-id only sets the group of new files.
  return mode & (S_ISDIR(mode) ? (mode_t)(S_IFMT | 03777) : (mode_t)(S_IFMT | 01777));
}

static int change_mode(int fd, const struct stat *status, mode_t mode) {
  char path[32];
  // The only way to change the mode of a file that cannot be opened for reading; the link refers to the file itself.
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  mode = permitted_mode((status->st_mode & S_IFMT) | (mode & 07777)) & 07777;
  // Set-group-id of a folder requires membership in its group; the guest's kernel has checked the caller's rights.
  struct failure failure = {0};
  if (act_as_owner(0, status->st_gid, &failure) < 0) return failure.error;
  int error = chmod(path, mode) < 0 ? errno : 0;
  act_as_root();
  return error;
}

static int change_owner(const struct server *server, int fd, const struct fuse_setattr_in *in) {
  uint32_t uid = (uint32_t)-1, gid = (uint32_t)-1;
  if ((in->valid & FATTR_UID) && !stored_id(&server->users, in->uid, &uid)) return EOVERFLOW;
  if ((in->valid & FATTR_GID) && !stored_id(&server->groups, in->gid, &gid)) return EOVERFLOW;
  return fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
}

/** Changes the guest's view; on the host only mirrored bits change, and never one that grants rights. */
static int change_appearance(struct server *server, const struct node *node, int fd, const struct fuse_setattr_in *in) {
  struct stat status;
  if (fstat(fd, &status) < 0) return errno;
  struct appearance wanted = appearance_of(server, fd, &status, node->key);
  if (in->valid & FATTR_UID) wanted.uid = in->uid;
  if (in->valid & FATTR_GID) wanted.gid = in->gid;
  if (in->valid & FATTR_MODE) {
    wanted.mode = (status.st_mode & S_IFMT) | (in->mode & 07777);
    if (server->overlay.plan.is_mirrored && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
      mode_t kept = S_ISDIR(status.st_mode) ? status.st_mode & 03000 : 0;
      int error = change_mode(fd, &status, kept | (in->mode & 0777));
      if (error != 0) return error;
      if (fstat(fd, &status) < 0) return errno;
    }
  }
  return keep_appearance(server, fd, &status, node->key, &wanted);
}

static int change_literally(const struct server *server, int fd, const struct fuse_setattr_in *in) {
  struct stat status;
  int error = (in->valid & (FATTR_UID | FATTR_GID)) ? change_owner(server, fd, in) : 0;
  if (error != 0 || (in->valid & FATTR_MODE) == 0) return error;
  return fstat(fd, &status) < 0 ? errno : change_mode(fd, &status, in->mode);
}

static int change_times(int fd, const struct fuse_setattr_in *in) {
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
  if (in->valid & FATTR_ATIME_NOW) times[0].tv_nsec = UTIME_NOW;
  else if (in->valid & FATTR_ATIME) times[0] = (struct timespec){(time_t)in->atime, (long)in->atimensec};
  if (in->valid & FATTR_MTIME_NOW) times[1].tv_nsec = UTIME_NOW;
  else if (in->valid & FATTR_MTIME) times[1] = (struct timespec){(time_t)in->mtime, (long)in->mtimensec};
  return utimensat(fd, "", times, AT_EMPTY_PATH) < 0 ? errno : 0;
}

static int change_size(struct server *server, const struct node *node, uint64_t size) {
  struct stat status;
  int fd = open_node(server, node, O_WRONLY | O_NONBLOCK);
  if (fd < 0) return errno;
  int error = fstat(fd, &status) < 0 ? errno : 0;
  if (error == 0 && !S_ISREG(status.st_mode)) error = EINVAL;
  if (error == 0 && ftruncate(fd, (off_t)size) < 0) error = errno;
  if (error == 0) {
    uint64_t before = bytes_of(&status);
    if (fstat(fd, &status) == 0) count_file(&server->quota, node->key, before, bytes_of(&status));
  }
  close(fd);
  return error;
}

int handle_setattr(struct server *server, const struct call *call, struct reply *reply) {
  const struct fuse_setattr_in *in = (const struct fuse_setattr_in *)call->body;
  const struct node *node = node_of(server, call);
  int fd = open_node(server, node, O_PATH);
  if (fd < 0) return errno;
  int error = 0;
  if (in->valid & (FATTR_UID | FATTR_GID | FATTR_MODE)) {
    error = server->overlay.plan.kind == STAT_OFF ? change_literally(server, fd, in) : change_appearance(server, node, fd, in);
  }
  if (error == 0 && (in->valid & FATTR_SIZE)) error = change_size(server, node, in->size);
  if (error == 0 && (in->valid & (FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW))) error = change_times(fd, in);
  if (error == 0) error = answer_attributes(server, node, fd, reply);
  close(fd);
  return error;
}

int handle_readlink(struct server *server, const struct call *call, struct reply *reply) {
  int fd = open_node(server, node_of(server, call), O_PATH);
  if (fd < 0) return errno;
  ssize_t length = readlinkat(fd, "", reply->data, PATH_MAX);
  int error = length < 0 ? errno : 0;
  close(fd);
  if (error == 0) reply->length = (size_t)length;
  return error;
}

int handle_statfs(struct server *server, const struct call *call, struct reply *reply) {
  (void)call;
  struct statvfs host;
  if (fstatvfs(server->anchor, &host) < 0) return errno;
  struct fuse_statfs_out *out = (struct fuse_statfs_out *)reply->data;
  *out = (struct fuse_statfs_out){.st = {.bsize = (uint32_t)host.f_bsize, .frsize = (uint32_t)host.f_frsize}};
  uint64_t room = room_in(&server->quota) / host.f_frsize;
  uint64_t used = used_of(&server->quota) / host.f_frsize;
  uint64_t available = room < host.f_bavail ? room : host.f_bavail;
  bool is_limited = server->quota.limit_bytes != UINT64_MAX;
  out->st.bavail = available;
  out->st.bfree = is_limited ? available : host.f_bfree;
  out->st.blocks = is_limited ? used + available : host.f_blocks;
  out->st.files = host.f_files;
  out->st.ffree = host.f_ffree;
  out->st.namelen = (uint32_t)host.f_namemax;
  reply->length = sizeof *out;
  return 0;
}
