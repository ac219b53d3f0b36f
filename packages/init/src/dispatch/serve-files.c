#include "dispatch/serve-files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dispatch/channel.h"
#include "loop/descriptors.h"
#include "loop/loop.h"
#include "privileges/privileges.h"
#include "wire/activity.h"
#include "wire/conn.h"

// Capabilities for file work: change owners, modes and times of files of other users, and read and write them.
#define CAPABILITY(cap) (1ull << (cap))
#define FILE_CAPABILITIES (CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_FOWNER) | CAPABILITY(CAP_FSETID))

static bool parse_id(const char *text, unsigned *id);
static bool enter(const char *dir);
static bool become(unsigned uid, unsigned gid);

int serve_files(int count, char **arguments) {
  unsigned uid = 0, gid = 0;
  if (count != 1 && (count != 3 || !parse_id(arguments[1], &uid) || !parse_id(arguments[2], &gid))) {
    return fputs("usage: svc-init serve-files DIR [UID GID]\n", stderr), 2;
  }
  activity_init();
  descriptors_init();
  signal(SIGPIPE, SIG_IGN);
  umask(022);
  // SAFETY: the root first, while mounting is still allowed; after that no path leads to files of the host.
  if (!enter(arguments[0])) return perror("svc-init: cannot make the folder the root"), 1;
  if (!become(uid, gid)) return perror("svc-init: cannot take the identity"), 1;
  if (!privileges_init(PROFILE_RESTRICTED)) return perror("svc-init: cannot lower privileges"), 1;
  loop_init();
  if (fcntl(0, F_SETFL, O_RDWR | O_NONBLOCK) < 0) return perror("svc-init: descriptor 0"), 1;
  struct conn *conn = conn_new(0, 1, &channel_files_handler);
  if (!conn) return fputs("svc-init: descriptor 0 is no socket\n", stderr), 1;
  channel_greet(conn);
  for (;;) loop_turn(conns_settle);
}

static bool parse_id(const char *text, unsigned *id) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  *id = (unsigned)value;
  return *text >= '0' && *text <= '9' && !*end && !errno && value < 0xffffffff;
}

static bool enter(const char *dir) {
  close_inherited(3);
  if (unshare(CLONE_NEWNS) < 0) return false;
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return false;
  int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fchdir(fd) < 0) return false;
  close(fd);
  // A bind mount without devices and set-uid programs; not recursive: mounts below the folder stay outside.
  if (mount(".", ".", NULL, MS_BIND, NULL) < 0 || chdir(dir) < 0) return false;
  if (mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) return false;
  // The old root is stacked over the new one; detaching it removes the last way back.
  return syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
}

static bool become(unsigned uid, unsigned gid) {
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) return false;
  if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) return false;
  return capabilities_keep(FILE_CAPABILITIES);
}
