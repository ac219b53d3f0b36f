#include "confine/mark-opaque.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "failure.h"

/** SAFETY: the names come from a layer, and the files from a program that read it: RESOLVE_IN_ROOT keeps every step inside. */
static int mark_one(int root, const char *path, struct failure *failure) {
  struct open_how how = {
      .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
  };
  int folder = (int)syscall(SYS_openat2, root, *path == '\0' ? "." : path, &how, sizeof how);
  if (folder < 0) return fail(failure, "open an opaque folder");
  int outcome = fsetxattr(folder, "trusted.overlay.opaque", "y", 1, 0) == 0 ? 0 : fail(failure, "mark an opaque folder");
  close(folder);
  return outcome;
}

int mark_opaque(const char *root_path) {
  struct failure failure = {0};
  char *path = NULL;
  size_t capacity = 0;
  int root = open(root_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (root < 0) fail(&failure, "open the layer");
  while (failure.error == 0 && getdelim(&path, &capacity, '\0', stdin) > 0) mark_one(root, path, &failure);
  if (failure.error == 0 && ferror(stdin)) fail(&failure, "read the names");
  free(path);
  if (failure.error == 0) return 0;
  fprintf(stderr, "svc-host: cannot %s: %s\n", failure.step, strerror(failure.error));
  return 1;
}
