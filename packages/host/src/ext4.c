#include "ext4.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/** Offsets in the superblock: https://docs.kernel.org/filesystems/ext4/super.html */
enum { SUPERBLOCK = 1024, MAGIC = 0x38, STATE = 0x3A, FEATURE_COMPAT = 0x5C, SUPERBLOCK_BYTES = 0x60 };
enum { EXT4_MAGIC = 0xEF53, STATE_VALID = 1, STATE_ERRORS = 2, COMPAT_HAS_JOURNAL = 4 };

static uint16_t number16(const unsigned char *superblock, size_t place) {
  uint16_t value;
  memcpy(&value, superblock + place, sizeof value);
  return le16toh(value);
}

int check_clean(int file, struct failure *failure) {
  unsigned char superblock[SUPERBLOCK_BYTES];
  ssize_t got = pread(file, superblock, sizeof superblock, SUPERBLOCK);
  if (got < 0) return fail(failure, "read the superblock");
  if (got != sizeof superblock || number16(superblock, MAGIC) != EXT4_MAGIC) {
    return fail_with(failure, EINVAL, "the image holds no ext4 file system");
  }
  uint16_t state = number16(superblock, STATE);
  int has_journal = number16(superblock, FEATURE_COMPAT) & COMPAT_HAS_JOURNAL;
  if ((state & STATE_ERRORS) != 0 || (!has_journal && (state & STATE_VALID) == 0)) {
    return fail_with(failure, EUCLEAN, "the file system was not unmounted cleanly");
  }
  return 0;
}
