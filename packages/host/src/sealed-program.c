#include "sealed-program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum { ALL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
/** A program of this size is not a runtime. */
static const off_t MAX_PROGRAM_BYTES = 64 << 20;

/** Guards the copy, whose descriptor stays the same: launches that are under way may have its path. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int copy = -1;
static struct stat copied;

static bool is_same(const struct stat *one, const struct stat *other) {
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
         one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec &&
         one->st_ctim.tv_sec == other->st_ctim.tv_sec && one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

static int make_file(const char *program, struct failure *failure) {
  const char *slash = strrchr(program, '/');
  const char *name = slash == NULL ? program : slash + 1;
  int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  // Kernels before 6.3 have no such flag, and execute any.
  if (file < 0 && errno == EINVAL) file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  return file < 0 ? fail(failure, "make a file of memory") : file;
}

static int fill(int file, int source, off_t size, struct failure *failure) {
  for (off_t done = 0; done < size;) {
    ssize_t sent = sendfile(file, source, NULL, (size_t)(size - done));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail(failure, "copy the program");
    if (sent == 0) return fail_with(failure, EIO, "copy the program");
    done += sent;
  }
  if (fchmod(file, 0500) < 0) return fail(failure, "make the copy a program");
  return fcntl(file, F_ADD_SEALS, ALL_SEALS) < 0 ? fail(failure, "seal the program") : 0;
}

static int copy_program(const char *program, int source, const struct stat *status, struct failure *failure) {
  if (!S_ISREG(status->st_mode) || status->st_size > MAX_PROGRAM_BYTES) {
    return fail_with(failure, EINVAL, "seal what is no program");
  }
  int file = make_file(program, failure);
  if (file < 0) return -1;
  if (fill(file, source, status->st_size, failure) == 0) return file;
  close(file);
  return -1;
}

/** Called with the lock. */
static int renew(const char *program, int source, const struct stat *status, struct failure *failure) {
  int fresh = copy_program(program, source, status, failure);
  if (fresh < 0) return -1;
  if (copy < 0) {
    copy = fresh;
  } else {
    bool is_replaced = dup3(fresh, copy, O_CLOEXEC) >= 0;
    if (!is_replaced) fail(failure, "replace the copy");
    close(fresh);
    if (!is_replaced) return -1;
  }
  copied = *status;
  return 0;
}

int find_sealed_program(const char *program, char path[SEALED_PATH_BYTES], struct failure *failure) {
  int source = open(program, O_RDONLY | O_CLOEXEC);
  if (source < 0) return fail(failure, "open the program");
  struct stat status;
  pthread_mutex_lock(&lock);
  int outcome = fstat(source, &status) < 0 ? fail(failure, "look at the program") : 0;
  if (outcome == 0 && (copy < 0 || !is_same(&status, &copied))) outcome = renew(program, source, &status, failure);
  if (outcome == 0) snprintf(path, SEALED_PATH_BYTES, "/proc/%d/fd/%d", (int)getpid(), copy);
  pthread_mutex_unlock(&lock);
  close(source);
  return outcome;
}
