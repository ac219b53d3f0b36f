#include "serve/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

// Contents of regular files.

/** Blocks that a write may allocate beyond its bytes: the rest of its first and last block, and metadata. */
enum { SLACK_BYTES = 4 * 4096 };

void note_opened(struct server *server, struct node *node, uint32_t flags, uint64_t bytes) {
  node->open_count++;
  // Blocks from before the guest's first change count as the host's.
  if ((flags & O_ACCMODE) != O_RDONLY) count_file(&server->quota, node->key, bytes, bytes);
}

int handle_open(struct server *server, const struct call *call, struct reply *reply) {
  const struct fuse_open_in *in = (const struct fuse_open_in *)call->body;
  struct node *node = node_of(server, call);
  // The kernel opens pipes and sockets itself; a file that was replaced by one must not block us.
  int file = open_node(server, node, ((int)in->flags & (O_ACCMODE | O_SYNC | O_DSYNC)) | O_NONBLOCK);
  if (file < 0) return errno;
  struct stat status;
  if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return EINVAL;
  }
  note_opened(server, node, in->flags, bytes_of(&status));
  struct fuse_open_out *out = (struct fuse_open_out *)reply->data;
  *out = (struct fuse_open_out){.fh = (uint64_t)file};
  reply->length = sizeof *out;
  return 0;
}

int handle_read(struct server *server, const struct call *call, struct reply *reply) {
  (void)server;
  const struct fuse_read_in *in = (const struct fuse_read_in *)call->body;
  size_t wanted = in->size < MAX_TRANSFER_BYTES ? in->size : MAX_TRANSFER_BYTES;
  ssize_t length = pread((int)in->fh, reply->data, wanted, (off_t)in->offset);
  if (length < 0) return errno;
  reply->length = (size_t)length;
  return 0;
}

/** How many of the bytes may be written: all, when they fit or only overwrite existing ones. */
static size_t permitted_bytes(const struct server *server, int file, uint64_t offset, size_t size) {
  uint64_t room = room_in(&server->quota);
  if (size + SLACK_BYTES <= room) return size;
  off_t hole = lseek(file, (off_t)offset, SEEK_HOLE);
  // Counted in whole blocks: a file's last block is allocated already.
  uint64_t free_bytes = hole > (off_t)offset ? (uint64_t)hole - offset : 0;
  if (free_bytes > 0) free_bytes = ((offset + free_bytes + 4095) & ~UINT64_C(4095)) - offset;
  if (free_bytes >= size) return size;
  uint64_t permitted = free_bytes + (room > SLACK_BYTES ? room - SLACK_BYTES : 0);
  return permitted < size ? (size_t)permitted : size;
}

/** A file that is open for writing has a ledger entry. */
static void count_again(struct server *server, const struct node *node, int file) {
  struct stat status;
  if (fstat(file, &status) == 0) count_file(&server->quota, node->key, bytes_of(&status), bytes_of(&status));
}

int handle_write(struct server *server, const struct call *call, struct reply *reply) {
  const struct fuse_write_in *in = (const struct fuse_write_in *)call->body;
  if (in->size > call->length - sizeof *in) return EINVAL;
  int file = (int)in->fh;
  size_t size = permitted_bytes(server, file, in->offset, in->size);
  if (size == 0 && in->size > 0) return EDQUOT;
  ssize_t written = pwrite(file, call->body + sizeof *in, size, (off_t)in->offset);
  int error = written < 0 ? errno : 0;
  count_again(server, node_of(server, call), file);
  if (error != 0) return error;
  struct fuse_write_out *out = (struct fuse_write_out *)reply->data;
  *out = (struct fuse_write_out){.size = (uint32_t)written};
  reply->length = sizeof *out;
  return 0;
}

int handle_release(struct server *server, const struct call *call, struct reply *reply) {
  (void)reply;
  const struct fuse_release_in *in = (const struct fuse_release_in *)call->body;
  struct node *node = node_of(server, call);
  struct stat status = {0};
  bool is_unnamed = fstat((int)in->fh, &status) == 0 && status.st_nlink == 0;
  node->open_count--;
  close((int)in->fh);
  if (node->open_count > 0) return 0;
  if (is_unnamed) {
    count_gone_file(&server->quota, node->key, bytes_of(&status));
    strike_from_ledger(&server->overlay.remembered, node->key);
    return 0;
  }
  if ((in->flags & O_ACCMODE) == O_RDONLY) return 0;
  // Some file systems preallocate blocks for a growing file, and release them when it is closed.
  int file = open_node(server, node, O_PATH);
  if (file < 0) return 0;
  count_again(server, node, file);
  close(file);
  return 0;
}

int handle_fsync(struct server *server, const struct call *call, struct reply *reply) {
  (void)server;
  (void)reply;
  const struct fuse_fsync_in *in = (const struct fuse_fsync_in *)call->body;
  int outcome = (in->fsync_flags & FUSE_FSYNC_FDATASYNC) ? fdatasync((int)in->fh) : fsync((int)in->fh);
  return outcome < 0 ? errno : 0;
}

int handle_fallocate(struct server *server, const struct call *call, struct reply *reply) {
  (void)reply;
  const struct fuse_fallocate_in *in = (const struct fuse_fallocate_in *)call->body;
  bool is_freeing = (in->mode & FALLOC_FL_PUNCH_HOLE) != 0;
  if (!is_freeing && permitted_bytes(server, (int)in->fh, in->offset, in->length) < in->length) return EDQUOT;
  int error = fallocate((int)in->fh, (int)in->mode, (off_t)in->offset, (off_t)in->length) < 0 ? errno : 0;
  count_again(server, node_of(server, call), (int)in->fh);
  return error;
}

int handle_lseek(struct server *server, const struct call *call, struct reply *reply) {
  (void)server;
  const struct fuse_lseek_in *in = (const struct fuse_lseek_in *)call->body;
  if (in->whence != SEEK_DATA && in->whence != SEEK_HOLE) return EINVAL;
  off_t offset = lseek((int)in->fh, (off_t)in->offset, (int)in->whence);
  if (offset < 0) return errno;
  struct fuse_lseek_out *out = (struct fuse_lseek_out *)reply->data;
  *out = (struct fuse_lseek_out){.offset = (uint64_t)offset};
  reply->length = sizeof *out;
  return 0;
}
