#include "serve/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// Listings of folders.

int handle_opendir(struct server *server, const struct call *call, struct reply *reply) {
  int folder = open_node(server, node_of(server, call), O_RDONLY | O_DIRECTORY);
  if (folder < 0) return errno;
  struct fuse_open_out *out = (struct fuse_open_out *)reply->data;
  *out = (struct fuse_open_out){.fh = (uint64_t)folder};
  reply->length = sizeof *out;
  return 0;
}

/** Adds one entry; false when it does not fit any more. */
static bool add_entry(struct reply *reply, size_t capacity, const struct dirent64 *entry) {
  size_t length = strlen(entry->d_name);
  size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
  if (reply->length + size > capacity) return false;
  struct fuse_dirent *out = (struct fuse_dirent *)(reply->data + reply->length);
  memset(out, 0, size);
  out->ino = entry->d_ino;
  out->off = (uint64_t)entry->d_off;
  out->namelen = (uint32_t)length;
  out->type = entry->d_type;
  memcpy(out->name, entry->d_name, length);
  reply->length += size;
  return true;
}

int handle_readdir(struct server *server, const struct call *call, struct reply *reply) {
  (void)server;
  const struct fuse_read_in *in = (const struct fuse_read_in *)call->body;
  size_t capacity = in->size < MAX_TRANSFER_BYTES ? in->size : MAX_TRANSFER_BYTES;
  int folder = (int)in->fh;
  if (lseek(folder, (off_t)in->offset, SEEK_SET) < 0) return errno;
  static char buffer[32 * 1024] __attribute__((aligned(8)));
  for (;;) {
    ssize_t length = getdents64(folder, buffer, sizeof buffer);
    if (length < 0) return reply->length > 0 ? 0 : errno;
    if (length == 0) return 0;
    for (ssize_t at = 0; at < length;) {
      const struct dirent64 *entry = (const struct dirent64 *)(buffer + at);
      // The kernel asks again, starting behind the last entry that it got.
      if (!add_entry(reply, capacity, entry)) return 0;
      at += entry->d_reclen;
    }
  }
}

int handle_releasedir(struct server *server, const struct call *call, struct reply *reply) {
  (void)server;
  (void)reply;
  const struct fuse_release_in *in = (const struct fuse_release_in *)call->body;
  close((int)in->fh);
  return 0;
}
