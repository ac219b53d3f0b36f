#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/** Another process may take the free device first; this many failures in a row are an error. */
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

int check_loop(int loop, const char *image, struct failure *failure) {
  struct loop_info64 info;
  struct stat status;
  if (ioctl(loop, LOOP_GET_STATUS64, &info) < 0) return fail(failure, "inspect the loop device");
  if (stat(image, &status) < 0) return fail(failure, "inspect the image");
  bool is_same = info.lo_inode == status.st_ino && major(info.lo_device) == major(status.st_dev) &&
                 minor(info.lo_device) == minor(status.st_dev);
  return is_same ? 0 : fail_with(failure, ENXIO, "find the image on the loop device");
}

int write_directly(const char *device, const char *image, struct failure *failure) {
  // While it is open, the device cannot be given to another image.
  int loop = open(device, O_RDONLY | O_CLOEXEC);
  if (loop < 0) return fail(failure, "open the loop device");
  int result = check_loop(loop, image, failure);
  if (result == 0 && ioctl(loop, LOOP_SET_DIRECT_IO, 1UL) < 0) result = fail(failure, "write past the page cache");
  close(loop);
  return result;
}
