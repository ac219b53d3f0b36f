#include "process/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int pty_open(int *slave, unsigned rows, unsigned cols) {
  int unlocked = 0, number = -1;
  char path[32];
  // SAFETY: the guest may have replaced the file at this path: opened non-blocking, and only a terminal answers TIOCGPTN.
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (master < 0) return -1;
  if (!ioctl(master, TIOCGPTN, &number) && !ioctl(master, TIOCSPTLCK, &unlocked)) {
    *slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0) { // gVisor has no TIOCGPTPEER
      snprintf(path, sizeof path, "/dev/pts/%d", number);
      *slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
      if (*slave >= 0) fcntl(*slave, F_SETFL, O_RDWR);
    }
    if (*slave >= 0) {
      pty_resize(master, rows, cols);
      return master;
    }
  }
  int error = errno;
  close(master);
  errno = error;
  return -1;
}

void pty_resize(int master, unsigned rows, unsigned cols) {
  struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
  ioctl(master, TIOCSWINSZ, &size);
}
