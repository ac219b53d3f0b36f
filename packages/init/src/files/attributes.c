#include "files/attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/answer.h"
#include "files/handles.h"

static bool are_valid(const struct attributes *);
static int set_by_path(const char *path, bool follow, const struct attributes *);
static int set_by_fd(int fd, const struct attributes *);
static int set_size(const char *path, bool follow, int64_t size);
static int set_mode(const char *path, bool follow, mode_t mode);
static void times_of(const struct attributes *, struct timespec times[2]);

void file_setstat(struct conn *conn, uint32_t id, struct file_request *request) {
  if (!are_valid(&request->attrs)) return file_refused(conn, id, "setstat: an attribute is out of range");
  if (set_by_path(request->path, request->follow_symlink, &request->attrs) < 0) return file_failed(conn, id, "setstat", errno);
  file_ok(conn, id);
}

void file_fsetstat(struct conn *conn, uint32_t id, struct file_request *request) {
  struct handle *handle = handle_find(conn, request->handle);
  if (!handle) return file_refused(conn, id, "fsetstat: unknown handle");
  if (!are_valid(&request->attrs)) return file_refused(conn, id, "fsetstat: an attribute is out of range");
  if (set_by_fd(handle->fd, &request->attrs) < 0) return file_failed(conn, id, "fsetstat", errno);
  file_ok(conn, id);
}

static bool is_id(struct optional id) { return !id.is_set || (id.value >= 0 && id.value < UINT32_MAX); }

static bool are_valid(const struct attributes *attrs) {
  bool has_size = !attrs->size.is_set || attrs->size.value >= 0;
  bool has_mode = !attrs->mode.is_set || (attrs->mode.value >= 0 && attrs->mode.value <= UINT32_MAX);
  return has_size && has_mode && is_id(attrs->uid) && is_id(attrs->gid);
}

static uid_t id_or_keep(struct optional id) { return id.is_set ? (uid_t)id.value : (uid_t)-1; }

// Owner before mode: a change of owner clears setuid bits, which the new mode may contain.
static int set_by_path(const char *path, bool follow, const struct attributes *attrs) {
  int flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
  struct timespec times[2];
  struct stat found;
  times_of(attrs, times);
  if (fstatat(AT_FDCWD, path, &found, flags) < 0) return -1; // also without any change
  if (attrs->size.is_set && set_size(path, follow, attrs->size.value) < 0) return -1;
  bool has_owner = attrs->uid.is_set || attrs->gid.is_set;
  if (has_owner && fchownat(AT_FDCWD, path, id_or_keep(attrs->uid), id_or_keep(attrs->gid), flags) < 0) return -1;
  if (attrs->mode.is_set && set_mode(path, follow, (mode_t)attrs->mode.value & 07777) < 0) return -1;
  if (attrs->atime.is_set || attrs->mtime.is_set) return utimensat(AT_FDCWD, path, times, flags);
  return 0;
}

static int set_by_fd(int fd, const struct attributes *attrs) {
  struct timespec times[2];
  times_of(attrs, times);
  if (attrs->size.is_set && ftruncate(fd, attrs->size.value) < 0) return -1;
  bool has_owner = attrs->uid.is_set || attrs->gid.is_set;
  if (has_owner && fchown(fd, id_or_keep(attrs->uid), id_or_keep(attrs->gid)) < 0) return -1;
  if (attrs->mode.is_set && fchmod(fd, (mode_t)attrs->mode.value & 07777) < 0) return -1;
  if (attrs->atime.is_set || attrs->mtime.is_set) return futimens(fd, times);
  return 0;
}

static int set_size(const char *path, bool follow, int64_t size) {
  int fd = open_regular(path, O_WRONLY | (follow ? 0 : O_NOFOLLOW), 0);
  if (fd < 0) return -1;
  int result = ftruncate(fd, size), error = errno;
  close(fd);
  return errno = error, result;
}

static int set_mode(const char *path, bool follow, mode_t mode) {
  struct stat found;
  // Links have no mode of their own. In serve-files mode a link swapped in here still cannot lead out of the root.
  if (!follow && lstat(path, &found) == 0 && S_ISLNK(found.st_mode)) return errno = EOPNOTSUPP, -1;
  return chmod(path, mode);
}

static void times_of(const struct attributes *attrs, struct timespec times[2]) {
  times[0] = (struct timespec){attrs->atime.value, attrs->atime.is_set ? 0 : UTIME_OMIT};
  times[1] = (struct timespec){attrs->mtime.value, attrs->mtime.is_set ? 0 : UTIME_OMIT};
}
