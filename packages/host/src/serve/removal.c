#include "serve/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "serve/entries.h"

// Removing and renaming entries of folders.

/** A descriptor on the current target of an entry, -1 when there is none. */
static int hold(int folder, const char *name) { return openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC); }

/** Credits a file whose last name is gone; while the guest has it open, `handle_release` does. */
static void give_back_unnamed(struct server *server, int held) {
  struct stat status;
  uint64_t key;
  if (held < 0 || fstat(held, &status) < 0 || status.st_nlink > 0) return;
  const struct node *node = known_node(&server->nodes, held, &status, &key);
  if (key == 0 || (node != NULL && node->open_count > 0)) return;
  count_gone_file(&server->quota, key, bytes_of(&status));
  strike_from_ledger(&server->overlay.remembered, key);
}

static int remove_entry(struct server *server, const struct call *call, int flags) {
  const char *name = name_in(call->body, call->length);
  if (name == NULL) return EINVAL;
  int folder = open_node(server, node_of(server, call), O_PATH);
  if (folder < 0) return errno;
  int held = hold(folder, name);
  int error = unlinkat(folder, name, flags) < 0 ? errno : 0;
  if (error == 0) give_back_unnamed(server, held);
  if (held >= 0) close(held);
  close(folder);
  return error;
}

int handle_unlink(struct server *server, const struct call *call, struct reply *reply) {
  (void)reply;
  return remove_entry(server, call, 0);
}

int handle_rmdir(struct server *server, const struct call *call, struct reply *reply) {
  (void)reply;
  return remove_entry(server, call, AT_REMOVEDIR);
}

struct names {
  const char *old, *new;
  uint32_t flags;
};

static int move(struct server *server, int from, const struct node *target, const struct names *names) {
  int to = open_node(server, target, O_PATH);
  if (to < 0) return errno;
  struct stat before, after;
  int error = fstat(to, &before) < 0 ? errno : 0;
  int replaced = hold(to, names->new);
  if (error == 0 && renameat2(from, names->old, to, names->new, names->flags) < 0) error = errno;
  if (error == 0) {
    if (fstat(to, &after) == 0) count_file(&server->quota, target->key, bytes_of(&before), bytes_of(&after));
    give_back_unnamed(server, replaced);
  }
  if (replaced >= 0) close(replaced);
  close(to);
  return error;
}

static int rename_entry(struct server *server, const struct call *call, uint64_t new_folder, const char *text, uint32_t flags) {
  size_t length = call->length - (size_t)(text - call->body);
  struct names names = {.old = name_in(text, length), .flags = flags};
  if (names.old == NULL || (flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return EINVAL;
  size_t used = strlen(names.old) + 1;
  names.new = name_in(text + used, length - used);
  if (names.new == NULL) return EINVAL;
  int from = open_node(server, node_of(server, call), O_PATH);
  if (from < 0) return errno;
  int error = move(server, from, find_node(&server->nodes, new_folder), &names);
  close(from);
  return error;
}

int handle_rename(struct server *server, const struct call *call, struct reply *reply) {
  (void)reply;
  const struct fuse_rename_in *in = (const struct fuse_rename_in *)call->body;
  return rename_entry(server, call, in->newdir, call->body + sizeof *in, 0);
}

int handle_rename2(struct server *server, const struct call *call, struct reply *reply) {
  (void)reply;
  const struct fuse_rename2_in *in = (const struct fuse_rename2_in *)call->body;
  return rename_entry(server, call, in->newdir, call->body + sizeof *in, in->flags);
}
