#include "serve/stat-overlay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "owner-map.h"

/** Three words: mode in octal, user and group of the guest; `-` for values of the host. */
static const char ATTRIBUTE[] = "user.svc.stat";

/** The owner that a guest sees on files of users outside of its id range. */
enum { UNKNOWN_OWNER = 65534 };

/** The values that differ from the host, or NOTHING. Packed into the number of a ledger entry. */
enum { NOTHING = -1 };
struct difference {
  int32_t mode, uid, gid;
};

static const struct difference NO_DIFFERENCE = {NOTHING, NOTHING, NOTHING};

bool has_stat_attributes(int fd) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return getxattr(path, ATTRIBUTE, NULL, 0) >= 0 || errno != EOPNOTSUPP;
}

static bool can_have_attribute(const struct server *server, mode_t mode) {
  return server->overlay.has_attributes && (S_ISREG(mode) || S_ISDIR(mode));
}

/** Parses one word; false when it is malformed. */
static bool read_word(const char **text, unsigned base, int32_t most, int32_t *value) {
  const char *at = *text;
  *value = NOTHING;
  if (*at == '-') {
    at++;
  } else {
    int32_t number = 0;
    if (*at < '0' || *at >= (char)('0' + base)) return false;
    for (; *at >= '0' && *at < (char)('0' + base); at++) {
      number = number * (int32_t)base + (*at - '0');
      if (number > most) return false;
    }
    *value = number;
  }
  bool is_complete = *at == ' ' || *at == '\0';
  *text = *at == ' ' ? at + 1 : at;
  return is_complete;
}

/** The owner of a file on the host can write the attribute: malformed values are ignored. */
static struct difference read_attribute(int fd) {
  char path[32], text[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ssize_t length = getxattr(path, ATTRIBUTE, text, sizeof text - 1);
  if (length <= 0) return NO_DIFFERENCE;
  text[length] = '\0';
  const char *at = text;
  struct difference found;
  bool is_ours = read_word(&at, 8, 07777, &found.mode) && read_word(&at, 10, IDS_PER_SANDBOX - 1, &found.uid) &&
                 read_word(&at, 10, IDS_PER_SANDBOX - 1, &found.gid) && *at == '\0';
  return is_ours ? found : NO_DIFFERENCE;
}

static int write_attribute(int fd, const struct difference *difference) {
  char path[32], words[3][12], text[40];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int32_t values[3] = {difference->mode, difference->uid, difference->gid};
  for (int index = 0; index < 3; index++) {
    if (values[index] == NOTHING) strcpy(words[index], "-");
    else snprintf(words[index], sizeof words[index], index == 0 ? "%o" : "%u", (unsigned)values[index]);
  }
  if (memcmp(difference, &NO_DIFFERENCE, sizeof *difference) == 0) {
    return removexattr(path, ATTRIBUTE) == 0 || errno == ENODATA ? 0 : errno;
  }
  int length = snprintf(text, sizeof text, "%s %s %s", words[0], words[1], words[2]);
  return setxattr(path, ATTRIBUTE, text, (size_t)length, 0) == 0 ? 0 : errno;
}

/** 16 bits for each id and 12 for the mode, with one more each for whether it is set. */
static uint64_t pack(const struct difference *difference) {
  const int32_t values[3] = {difference->mode, difference->uid, difference->gid};
  uint64_t packed = 0;
  for (int index = 0; index < 3; index++) {
    if (values[index] != NOTHING) packed |= (UINT64_C(1) << 20 | (uint64_t)values[index]) << (21 * index);
  }
  return packed;
}

static struct difference unpack(uint64_t packed) {
  int32_t values[3];
  for (int index = 0; index < 3; index++) {
    uint64_t part = packed >> (21 * index) & 0x1fffff;
    values[index] = part >> 20 == 0 ? NOTHING : (int32_t)(part & 0xfffff);
  }
  return (struct difference){values[0], values[1], values[2]};
}

static struct difference read_difference(const struct server *server, int fd, mode_t mode, uint64_t key) {
  uint64_t packed;
  if (can_have_attribute(server, mode)) return read_attribute(fd);
  return read_ledger(&server->overlay.remembered, key, &packed) ? unpack(packed) : NO_DIFFERENCE;
}

/** The attributes on the host. False when the owner is not in the guest's id range. */
static bool host_appearance(const struct server *server, const struct stat *status, struct appearance *shown) {
  *shown = (struct appearance){UNKNOWN_OWNER, UNKNOWN_OWNER, status->st_mode};
  bool is_known = host_id(&server->users, status->st_uid, &shown->uid);
  host_id(&server->groups, status->st_gid, &shown->gid);
  return is_known;
}

struct appearance appearance_of(const struct server *server, int fd, const struct stat *status, uint64_t key) {
  struct appearance shown;
  bool is_known = host_appearance(server, status, &shown);
  // SAFETY: a file that the host has given to another user is that user's; the guest's overlay does not apply to it.
  if (server->overlay.plan.kind == STAT_OFF || !is_known) return shown;
  struct difference found = read_difference(server, fd, status->st_mode, key);
  if (found.mode != NOTHING) shown.mode = (status->st_mode & S_IFMT) | (mode_t)found.mode;
  if (found.uid != NOTHING) shown.uid = server->users.id_base + (uint32_t)found.uid;
  if (found.gid != NOTHING) shown.gid = server->groups.id_base + (uint32_t)found.gid;
  return shown;
}

static bool guest_id(const struct owner_map *map, uint32_t id, int32_t *guest) {
  if (id < map->id_base || id - map->id_base >= IDS_PER_SANDBOX) return false;
  *guest = (int32_t)(id - map->id_base);
  return true;
}

int keep_appearance(struct server *server, int fd, const struct stat *status, uint64_t key, const struct appearance *wanted) {
  struct appearance real;
  if (!host_appearance(server, status, &real)) return EPERM;
  struct difference difference = NO_DIFFERENCE;
  if (((wanted->mode ^ real.mode) & 07777) != 0) difference.mode = (int32_t)(wanted->mode & 07777);
  if (wanted->uid != real.uid && !guest_id(&server->users, wanted->uid, &difference.uid)) return EOVERFLOW;
  if (wanted->gid != real.gid && !guest_id(&server->groups, wanted->gid, &difference.gid)) return EOVERFLOW;
  if (can_have_attribute(server, status->st_mode)) return write_attribute(fd, &difference);
  uint64_t packed = pack(&difference);
  if (packed == 0) strike_from_ledger(&server->overlay.remembered, key);
  else write_ledger(&server->overlay.remembered, key, packed);
  return 0;
}
