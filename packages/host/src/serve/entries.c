#include "serve/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privileges.h"
#include "serve/attributes.h"
#include "serve/contents.h"
#include "serve/stat-overlay.h"

// Entries of folders: finding and making them.

/** A new entry may cost a block of its own and one more of its folder. */
enum { BYTES_PER_ENTRY = BYTES_PER_FILE + 2 * 4096 };

const char *name_in(const char *text, size_t length) {
  size_t end = strnlen(text, length);
  // SAFETY: the kernel sends single names; with anything else a call relative to a folder could leave it.
  if (end == length || end == 0 || end > NAME_MAX || memchr(text, '/', end) != NULL) return NULL;
  return strcmp(text, ".") == 0 || strcmp(text, "..") == 0 ? NULL : text;
}

int fill_entry(struct server *server, int fd, struct fuse_entry_out *entry) {
  struct stat status;
  if (fstat(fd, &status) < 0) return errno;
  const struct node *node = remember(&server->nodes, fd, &status);
  if (node == NULL) return errno;
  *entry = (struct fuse_entry_out){
      .nodeid = node_id(&server->nodes, node),
      .entry_valid = VALID_SECONDS,
      .attr_valid = VALID_SECONDS,
  };
  struct appearance shown = appearance_of(server, fd, &status, node->key);
  fill_attributes(&status, &shown, &entry->attr);
  return 0;
}

static int answer_entry(struct server *server, int folder, const char *name, struct reply *reply) {
  int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = fill_entry(server, fd, (struct fuse_entry_out *)reply->data);
  if (error == 0) reply->length = sizeof(struct fuse_entry_out);
  close(fd);
  return error;
}

int handle_lookup(struct server *server, const struct call *call, struct reply *reply) {
  const char *name = name_in(call->body, call->length);
  if (name == NULL) return ENAMETOOLONG;
  int folder = open_node(server, node_of(server, call), O_PATH);
  if (folder < 0) return errno;
  int error = answer_entry(server, folder, name, reply);
  close(folder);
  return error;
}

/** What is to be made, in the words of the kernel's call. */
struct new_entry {
  const char *name;
  mode_t mode;
  // Of a symbolic link.
  const char *target;
  // Of a regular file that is opened as well: the flags, and the descriptor it is opened at.
  int flags;
  int *opened;
};

/**
 * The mode of a new entry on the host. SAFETY: no set-user-id ever; a file that the guest keeps to itself is writable on the host by its owner
 * only.
 */
static mode_t mode_on_host(const struct server *server, mode_t wanted) {
  if (server->overlay.plan.kind == STAT_OFF) return permitted_mode(wanted);
  return wanted & (mode_t)(S_IFMT | (server->overlay.plan.is_mirrored ? 0777 : 0755));
}

static int make_in(const struct server *server, int folder, const struct new_entry *entry) {
  mode_t mode = mode_on_host(server, entry->mode);
  switch (mode & S_IFMT) {
    case S_IFDIR: return mkdirat(folder, entry->name, mode & 07777);
    case S_IFLNK: return symlinkat(entry->target, folder, entry->name);
    case S_IFREG:
      if (entry->opened == NULL) return mknodat(folder, entry->name, mode, 0);
      *entry->opened = openat(folder, entry->name, entry->flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 07777);
      return *entry->opened;
    case S_IFIFO:
    case S_IFSOCK: return mknodat(folder, entry->name, mode, 0);
    default: errno = EPERM; return -1;
  }
}

/** Makes it as the calling user, or with an overlay as the owner of the folder, so that it never has another owner. */
static int make_as_caller(const struct server *server, const struct call *call, int folder, const struct new_entry *entry) {
  uint32_t uid, gid;
  if (!stored_id(&server->users, call->header->uid, &uid) || !stored_id(&server->groups, call->header->gid, &gid)) return EOVERFLOW;
  if (server->overlay.plan.kind != STAT_OFF) {
    uid = server->users.disk_owner;
    gid = server->groups.disk_owner;
  }
  struct failure failure = {0};
  if (act_as_owner(uid, gid, &failure) < 0) return failure.error;
  int error = make_in(server, folder, entry) < 0 ? errno : 0;
  act_as_root();
  return error;
}

static void count_growth(struct server *server, const struct call *call, int folder, const struct stat *before) {
  struct stat after;
  if (fstat(folder, &after) == 0) count_file(&server->quota, node_of(server, call)->key, bytes_of(before), bytes_of(&after));
}

/** Gives a new entry the owner and the mode that the guest expects of it. */
static int give_appearance(struct server *server, const struct call *call, int folder, int fd, mode_t mode) {
  if (server->overlay.plan.kind == STAT_OFF) return 0;
  struct stat status;
  uint64_t key;
  if (fstat(folder, &status) < 0) return errno;
  struct appearance parent = appearance_of(server, folder, &status, node_of(server, call)->key);
  struct appearance wanted = {call->header->uid, call->header->gid, mode};
  if (parent.mode & S_ISGID) {
    wanted.gid = parent.gid;
    if (S_ISDIR(mode)) wanted.mode |= S_ISGID;
  }
  if (fstat(fd, &status) < 0) return errno;
  known_node(&server->nodes, fd, &status, &key);
  return keep_appearance(server, fd, &status, key, &wanted);
}

/** What was made, when its making was completed. On failure nothing is left. */
static int answer_made(struct server *server, const struct call *call, int folder, const struct new_entry *entry,
                       struct reply *reply) {
  int fd = entry->opened != NULL ? *entry->opened : openat(folder, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = give_appearance(server, call, folder, fd, entry->mode);
  if (error == 0) error = fill_entry(server, fd, (struct fuse_entry_out *)reply->data);
  else unlinkat(folder, entry->name, S_ISDIR(entry->mode) ? AT_REMOVEDIR : 0);
  if (error == 0) reply->length = sizeof(struct fuse_entry_out);
  if (entry->opened == NULL) close(fd);
  return error;
}

static int make(struct server *server, const struct call *call, const struct new_entry *entry, struct reply *reply) {
  if (room_in(&server->quota) < BYTES_PER_ENTRY) return EDQUOT;
  int folder = open_node(server, node_of(server, call), O_PATH);
  if (folder < 0) return errno;
  struct stat before;
  int error = fstat(folder, &before) < 0 ? errno : make_as_caller(server, call, folder, entry);
  if (error == 0) {
    error = answer_made(server, call, folder, entry, reply);
    count_growth(server, call, folder, &before);
    const struct fuse_entry_out *made = (const struct fuse_entry_out *)reply->data;
    if (error == 0) count_new_file(&server->quota, find_node(&server->nodes, made->nodeid)->key, made->attr.blocks * 512);
  }
  close(folder);
  return error;
}

int handle_mkdir(struct server *server, const struct call *call, struct reply *reply) {
  const struct fuse_mkdir_in *in = (const struct fuse_mkdir_in *)call->body;
  struct new_entry entry = {.name = name_in(call->body + sizeof *in, call->length - sizeof *in)};
  entry.mode = S_IFDIR | (in->mode & 07777);
  return entry.name == NULL ? EINVAL : make(server, call, &entry, reply);
}

int handle_mknod(struct server *server, const struct call *call, struct reply *reply) {
  const struct fuse_mknod_in *in = (const struct fuse_mknod_in *)call->body;
  struct new_entry entry = {.name = name_in(call->body + sizeof *in, call->length - sizeof *in), .mode = in->mode};
  return entry.name == NULL ? EINVAL : make(server, call, &entry, reply);
}

int handle_symlink(struct server *server, const struct call *call, struct reply *reply) {
  struct new_entry entry = {.name = name_in(call->body, call->length), .mode = S_IFLNK | 0777};
  if (entry.name == NULL) return EINVAL;
  size_t used = strlen(entry.name) + 1;
  entry.target = call->body + used;
  if (strnlen(entry.target, call->length - used) == call->length - used) return EINVAL;
  return make(server, call, &entry, reply);
}

int handle_link(struct server *server, const struct call *call, struct reply *reply) {
  const struct fuse_link_in *in = (const struct fuse_link_in *)call->body;
  const char *name = name_in(call->body + sizeof *in, call->length - sizeof *in);
  if (name == NULL) return EINVAL;
  if (room_in(&server->quota) < BYTES_PER_ENTRY) return EDQUOT;
  int file = open_node(server, find_node(&server->nodes, in->oldnodeid), O_PATH);
  if (file < 0) return errno;
  int folder = open_node(server, node_of(server, call), O_PATH);
  int error = folder < 0 ? errno : 0;
  struct stat before;
  if (error == 0 && fstat(folder, &before) < 0) error = errno;
  if (error == 0 && linkat(file, "", folder, name, AT_EMPTY_PATH) < 0) error = errno;
  if (error == 0) {
    count_growth(server, call, folder, &before);
    error = answer_entry(server, folder, name, reply);
  }
  if (folder >= 0) close(folder);
  close(file);
  return error;
}

/** Opens a file that was made since the guest looked. */
static int open_existing(const struct server *server, const struct call *call, const struct new_entry *entry) {
  int folder = open_node(server, node_of(server, call), O_PATH);
  if (folder < 0) return errno;
  *entry->opened = openat(folder, entry->name, entry->flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  int error = *entry->opened < 0 ? errno : 0;
  close(folder);
  return error;
}

static int answer_existing(struct server *server, int file, struct reply *reply) {
  struct stat status;
  if (fstat(file, &status) < 0) return errno;
  return S_ISREG(status.st_mode) ? fill_entry(server, file, (struct fuse_entry_out *)reply->data) : EEXIST;
}

int handle_create(struct server *server, const struct call *call, struct reply *reply) {
  const struct fuse_create_in *in = (const struct fuse_create_in *)call->body;
  int file = -1;
  struct new_entry entry = {
      .name = name_in(call->body + sizeof *in, call->length - sizeof *in),
      .mode = S_IFREG | (in->mode & 07777),
      .flags = (int)in->flags & (O_ACCMODE | O_SYNC | O_DSYNC),
      .opened = &file,
  };
  if (entry.name == NULL) return EINVAL;
  int error = make(server, call, &entry, reply);
  if (error == EEXIST && (in->flags & O_EXCL) == 0) {
    error = open_existing(server, call, &entry);
    if (error == 0) error = answer_existing(server, file, reply);
  }
  if (error != 0) {
    if (file >= 0) close(file);
    return error;
  }
  const struct fuse_entry_out *made = (const struct fuse_entry_out *)reply->data;
  note_opened(server, find_node(&server->nodes, made->nodeid), in->flags, made->attr.blocks * 512);
  struct fuse_open_out *out = (struct fuse_open_out *)(reply->data + sizeof *made);
  *out = (struct fuse_open_out){.fh = (uint64_t)file};
  reply->length = sizeof *made + sizeof *out;
  return 0;
}
