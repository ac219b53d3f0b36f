#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/** Another process may take the device we were told is free; that many in a row means something is wrong. */
enum { MAX_ATTEMPTS = 100 };

static int attach_free(int control, const struct loop_config *config, char *device, size_t device_size, struct failure *failure) {
  for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) return fail(failure, "find a free loop device");
    snprintf(device, device_size, "/dev/loop%d", number);
    int loop = open(device, O_RDWR | O_CLOEXEC);
    if (loop < 0) return fail(failure, "open the loop device");
    if (ioctl(loop, LOOP_CONFIGURE, config) == 0) return loop;
    int error = errno;
    close(loop);
    if (error != EBUSY) return fail_with(failure, error, "configure the loop device");
  }
  return fail_with(failure, EBUSY, "find a free loop device");
}

int attach_loop(int file, bool readonly, char *device, size_t device_size, struct failure *failure) {
  int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) return fail(failure, "open the loop control device");
  struct loop_config config = {.fd = (uint32_t)file};
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | (readonly ? LO_FLAGS_READ_ONLY : 0);
  int loop = attach_free(control, &config, device, device_size, failure);
  close(control);
  return loop;
}
