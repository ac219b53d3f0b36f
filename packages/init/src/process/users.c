#include "process/users.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Own parser: a static program has no name service, and the guest's libraries cannot be trusted.

struct account {
  const char *name;
  uint32_t uid, gid;
  const char *home;
};

static char *read_account_file(const char *path);
static char *next_line(char **rest);
static int split(char *line, char **columns, int max);
static bool parse_id(const char *text, uint32_t *id);
static bool find_account(char *file, const char *name, bool is_number, uint32_t uid, struct account *);
static bool find_group(char *file, const char *name, uint32_t *gid);
static void add_memberships(char *file, const char *name, struct identity *);

bool identity_of(const char *spec, struct identity *identity, char *message, size_t message_size) {
  char name[256], *group = NULL;
  *identity = (struct identity){.home = "/"};
  if (strlen(spec) >= sizeof name) return snprintf(message, message_size, "user name is too long"), false;
  strcpy(name, spec);
  if ((group = strchr(name, ':'))) *group++ = 0;
  uint32_t uid = 0, gid = 0;
  bool is_number = parse_id(name, &uid);
  char *passwd = read_account_file("/etc/passwd");
  struct account account = {.name = is_number ? NULL : name, .uid = uid};
  bool found = passwd && find_account(passwd, name, is_number, uid, &account);
  bool ok = found || is_number || (!strcmp(name, "root") && (account.uid = 0, true));
  if (!ok) snprintf(message, message_size, "unknown user \"%s\": it has no entry in /etc/passwd", name);
  identity->uid = account.uid;
  identity->gid = found ? account.gid : 0;
  if (found && account.home[0] == '/') snprintf(identity->home, sizeof identity->home, "%s", account.home);
  else if (!found && !is_number) strcpy(identity->home, "/root");
  char *groups = ok && (group || account.name) ? read_account_file("/etc/group") : NULL;
  if (ok && group) {
    ok = parse_id(group, &gid) || (groups && find_group(groups, group, &gid));
    if (!ok) snprintf(message, message_size, "unknown group \"%s\": it has no entry in /etc/group", group);
    identity->gid = gid;
  } else if (groups) {
    add_memberships(groups, account.name, identity);
  }
  free(passwd);
  free(groups);
  return ok;
}

static char *read_account_file(const char *path) {
  struct stat stat;
  // SAFETY: the guest owns this path; a FIFO or device there must neither block nor be read.
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return NULL;
  char *text = NULL;
  if (!fstat(fd, &stat) && S_ISREG(stat.st_mode)) {
    size_t size = stat.st_size < ACCOUNT_FILE_MAX ? (size_t)stat.st_size : ACCOUNT_FILE_MAX, length = 0;
    ssize_t got;
    text = malloc(size + 1);
    while (text && length < size && (got = read(fd, text + length, size - length)) > 0) length += (size_t)got;
    if (text) text[length] = 0;
  }
  close(fd);
  return text;
}

static char *next_line(char **rest) {
  char *line = *rest;
  if (!line || !*line) return NULL;
  char *end = strchr(line, '\n');
  if (end) *end++ = 0;
  *rest = end;
  return line;
}

static int split(char *line, char **columns, int max) {
  int count = 0;
  while (line && count < max) {
    columns[count++] = line;
    if ((line = strchr(line, ':'))) *line++ = 0;
  }
  return count;
}

static bool parse_id(const char *text, uint32_t *id) {
  uint64_t value = 0;
  if (!*text) return false;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return false;
    value = value * 10 + (uint64_t)(*text - '0');
    if (value >= UINT32_MAX) return false; // (uid_t)-1 means "leave as it is"
  }
  *id = (uint32_t)value;
  return true;
}

static bool find_account(char *file, const char *name, bool is_number, uint32_t uid, struct account *account) {
  char *line, *columns[7];
  while ((line = next_line(&file))) {
    uint32_t line_uid, line_gid;
    int count = split(line, columns, 7);
    if (count < 4 || !parse_id(columns[2], &line_uid) || !parse_id(columns[3], &line_gid)) continue;
    if (is_number ? line_uid != uid : strcmp(columns[0], name) != 0) continue;
    *account = (struct account){columns[0], line_uid, line_gid, count > 5 ? columns[5] : ""};
    return true;
  }
  return false;
}

static bool find_group(char *file, const char *name, uint32_t *gid) {
  char *line, *columns[4];
  while ((line = next_line(&file))) {
    if (split(line, columns, 4) >= 3 && !strcmp(columns[0], name) && parse_id(columns[2], gid)) return true;
  }
  return false;
}

static void add_memberships(char *file, const char *name, struct identity *identity) {
  char *line, *columns[4], *rest, *member;
  while ((line = next_line(&file))) {
    uint32_t gid;
    if (split(line, columns, 4) < 4 || !parse_id(columns[2], &gid) || gid == identity->gid) continue;
    for (member = strtok_r(columns[3], ",", &rest); member; member = strtok_r(NULL, ",", &rest)) {
      if (strcmp(member, name) != 0) continue;
      if (identity->group_count < GROUPS_MAX) identity->groups[identity->group_count++] = gid;
      break;
    }
  }
}
