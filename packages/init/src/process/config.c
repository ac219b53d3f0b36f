#include "process/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/users.h"

struct config config;

struct file {
  char *path;
  struct span data;
  uint64_t mode;
};

struct request {
  struct config config;
  struct span files; // its data are `struct file`s
};

static void read_files(struct reader *, struct arena *, void *target);
static bool write_file(const struct file *);
static bool make_parents(const char *path);

static const struct field fields[] = {
    {"env", field_strings, offsetof(struct request, config.env), false},
    {"user", field_string, offsetof(struct request, config.user), false},
    {"workdir", field_string, offsetof(struct request, config.workdir), false},
    {"shell", field_string, offsetof(struct request, config.shell), false},
    {"path_prefix", field_string, offsetof(struct request, config.path_prefix), false},
    {"rlimits", field_limits, offsetof(struct request, config.rlimits), false},
    {"unkept_limits", field_strings, offsetof(struct request, config.unkept), false},
    {"files", read_files, offsetof(struct request, files), false},
};

bool config_replace(struct reader *payload, char *message, size_t message_size) {
  struct arena arena = {0};
  struct request *request = calloc(1, sizeof *request);
  bool ok = request && read_fields(payload, &arena, fields, COUNT(fields), request);
  if (!ok) snprintf(message, message_size, "the payload of svc.configure is malformed");
  for (size_t i = 0; ok && i < request->files.length; i++) {
    const struct file *file = (const struct file *)(void *)request->files.at + i;
    ok = write_file(file);
    if (!ok) snprintf(message, message_size, "cannot write %.150s: %s", file->path, strerror(errno));
  }
  if (ok) {
    arena_free(&config.arena);
    config = request->config;
    config.arena = arena;
    config.is_set = true;
  } else {
    arena_free(&arena);
  }
  free(request);
  return ok;
}

bool config_prepare(char *message, size_t message_size) {
  struct identity unused;
  const char *workdir = config.workdir && *config.workdir ? config.workdir : "/";
  char inside[4096];
  struct stat stat_;
  if (config.user && *config.user && !identity_of(config.user, &unused, message, message_size)) return false;
  int length = snprintf(inside, sizeof inside, "%s/", workdir);
  bool ok = length > 0 && (size_t)length < sizeof inside && make_parents(inside) && !stat(workdir, &stat_);
  if (ok && !S_ISDIR(stat_.st_mode)) ok = false, errno = ENOTDIR;
  if (!ok) snprintf(message, message_size, "cannot make the working directory %.150s: %s", workdir, strerror(errno));
  return ok;
}

static void read_files(struct reader *reader, struct arena *arena, void *target) {
  static const struct field file_fields[] = {
      FIELD(struct file, path, field_string, true),
      FIELD(struct file, data, field_bytes, true),
      FIELD(struct file, mode, field_uint, false),
  };
  enum { FILES_MAX = 1024 };
  struct span *files = target;
  struct file *list = arena_take(arena, FILES_MAX * sizeof *list);
  struct container array = read_array(reader);
  *files = (struct span){(uint8_t *)list, 0};
  while (list && read_next(reader, &array)) {
    struct file file = {.mode = 0644};
    bool ok = read_fields(reader, arena, file_fields, COUNT(file_fields), &file);
    if (!ok || file.path[0] != '/' || files->length == FILES_MAX) {
      reader->bad = true;
      return;
    }
    list[files->length++] = file;
  }
}

static bool write_file(const struct file *file) {
  if (!make_parents(file->path)) return false;
  // SAFETY: replaced, not rewritten: a link or FIFO the guest left at this path is not followed.
  unlink(file->path);
  int fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd < 0) return false;
  size_t done = 0;
  while (done < file->data.length) {
    ssize_t wrote = write(fd, file->data.at + done, file->data.length - done);
    if (wrote <= 0) break;
    done += (size_t)wrote;
  }
  bool ok = done == file->data.length && !fchmod(fd, (mode_t)(file->mode & 07777));
  int error = errno;
  close(fd);
  errno = error;
  return ok;
}

static bool make_parents(const char *path) {
  char partial[4096];
  if (strlen(path) >= sizeof partial) return errno = ENAMETOOLONG, false;
  strcpy(partial, path);
  for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(partial, 0755) < 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  return true;
}
