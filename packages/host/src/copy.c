#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_range(int source, int sink, off_t start, off_t end, struct failure *failure) {
  static char buffer[128 * 1024];
  while (start < end) {
    size_t wanted = end - start < (off_t)sizeof buffer ? (size_t)(end - start) : sizeof buffer;
    ssize_t got = pread(source, buffer, wanted, start);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(failure, "read the file");
    if (got == 0) return fail_with(failure, EIO, "read the file: it shrank");
    for (ssize_t done = 0; done < got;) {
      ssize_t put = pwrite(sink, buffer + done, (size_t)(got - done), start + done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return fail(failure, "write the copy");
      done += put;
    }
    start += got;
  }
  return 0;
}

static int copy_content(int source, int sink, struct failure *failure) {
  struct stat status;
  if (fstat(source, &status) < 0) return fail(failure, "inspect the file");
  if (!S_ISREG(status.st_mode)) return fail_with(failure, EINVAL, "only a regular file can be copied");
  // Where the file system shares blocks between files, this is the whole copy.
  if (ioctl(sink, FICLONE, source) == 0) return 0;
  if (ftruncate(sink, status.st_size) < 0) return fail(failure, "size the copy");
  for (off_t end = 0;;) {
    off_t start = lseek(source, end, SEEK_DATA);
    if (start < 0 && errno == ENXIO) return 0;
    if (start < 0) return fail(failure, "find data in the file");
    end = lseek(source, start, SEEK_HOLE);
    if (end < 0) return fail(failure, "find a hole in the file");
    if (copy_range(source, sink, start, end, failure) < 0) return -1;
  }
}

int copy_sparse(const char *from, const char *to, struct failure *failure) {
  int source = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0) return fail(failure, "open the file to copy");
  int sink = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  int outcome = sink < 0 ? fail(failure, "make the copy") : copy_content(source, sink, failure);
  if (sink >= 0 && close(sink) < 0 && outcome == 0) outcome = fail(failure, "write the copy");
  if (sink >= 0 && outcome < 0) unlink(to);
  close(source);
  return outcome;
}
