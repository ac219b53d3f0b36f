#include "relay/take-socket.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_starter(struct failure *failure) {
  int process = (int)syscall(SYS_pidfd_open, getppid(), 0);
  return process < 0 ? fail(failure, "open the process that started this one") : process;
}

int take_socket(int process, uint32_t descriptor, uint32_t inode, struct failure *failure) {
  struct stat found;
  int socket = (int)syscall(SYS_pidfd_getfd, process, (int)descriptor, 0);
  if (socket < 0) return fail(failure, "take a socket");
  if (fstat(socket, &found) == 0 && S_ISSOCK(found.st_mode) && found.st_ino == inode) return socket;
  close(socket);
  return fail_with(failure, ESTALE, "the descriptor is another's by now");
}
