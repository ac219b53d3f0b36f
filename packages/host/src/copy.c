#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1024 * 1024 };

struct copying {
  int source, sink;
  const struct copy_watch *watch;
  char *buffer;
};

static int write_all(int sink, const char *bytes, size_t count, off_t at, struct failure *failure) {
  while (count > 0) {
    ssize_t put = pwrite(sink, bytes, count, at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(failure, "write the copy");
    bytes += put;
    at += put;
    count -= (size_t)put;
  }
  return 0;
}

static int copy_range(const struct copying *copying, off_t start, off_t end, struct failure *failure) {
  while (start < end) {
    if (copying->watch != NULL && copying->watch->may_go_on(copying->watch, failure) < 0) return -1;
    size_t wanted = end - start < BUFFER_BYTES ? (size_t)(end - start) : BUFFER_BYTES;
    ssize_t got = pread(copying->source, copying->buffer, wanted, start);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(failure, "read the file");
    if (got == 0) return fail_with(failure, EIO, "read the file: it shrank");
    if (write_all(copying->sink, copying->buffer, (size_t)got, start, failure) < 0) return -1;
    start += got;
  }
  return 0;
}

static int copy_data(const struct copying *copying, struct failure *failure) {
  for (off_t end = 0;;) {
    off_t start = lseek(copying->source, end, SEEK_DATA);
    if (start < 0 && errno == ENXIO) return 0;
    if (start < 0) return fail(failure, "find data in the file");
    end = lseek(copying->source, start, SEEK_HOLE);
    if (end < 0) return fail(failure, "find a hole in the file");
    if (copy_range(copying, start, end, failure) < 0) return -1;
  }
}

static int copy_content(int source, int sink, const struct copy_watch *watch, struct failure *failure) {
  struct stat status;
  if (fstat(source, &status) < 0) return fail(failure, "inspect the file");
  if (!S_ISREG(status.st_mode)) return fail_with(failure, EINVAL, "only a regular file can be copied");
  // Where the file system can share blocks between files (reflink), this copies everything.
  if (ioctl(sink, FICLONE, source) == 0) return 0;
  if (ftruncate(sink, status.st_size) < 0) return fail(failure, "size the copy");
  struct copying copying = {source, sink, watch, malloc(BUFFER_BYTES)};
  if (copying.buffer == NULL) return fail(failure, "get memory for the copy");
  int outcome = copy_data(&copying, failure);
  free(copying.buffer);
  return outcome;
}

int copy_sparse(const char *from, const char *to, const struct copy_watch *watch, struct failure *failure) {
  int source = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0) return fail(failure, "open the file to copy");
  int sink = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  int outcome = sink < 0 ? fail(failure, "make the copy") : copy_content(source, sink, watch, failure);
  if (sink >= 0 && close(sink) < 0 && outcome == 0) outcome = fail(failure, "write the copy");
  if (sink >= 0 && outcome < 0) unlink(to);
  close(source);
  return outcome;
}
