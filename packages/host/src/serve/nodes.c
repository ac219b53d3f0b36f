#include "serve/nodes.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct node *find_node(const struct nodes *nodes, uint64_t id) {
  // SAFETY: only the kernel sends requests, with ids that it got from us and has not forgotten.
  return id == FUSE_ROOT_ID ? nodes->root : (struct node *)(uintptr_t)id;
}

uint64_t node_id(const struct nodes *nodes, const struct node *node) {
  return node == nodes->root ? FUSE_ROOT_ID : (uint64_t)(uintptr_t)node;
}

static struct node **bucket_of(struct nodes *nodes, uint64_t device, uint64_t inode) {
  uint64_t hash = (inode ^ (device << 32)) * UINT64_C(0x9e3779b97f4a7c15);
  return &nodes->buckets[hash >> 48];
}

/** A file handle buffer of the maximum size. */
union any_handle {
  struct file_handle handle;
  char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

static int read_handle(int fd, union any_handle *found) {
  int mount_id;
  found->handle.handle_bytes = MAX_HANDLE_SZ;
  return name_to_handle_at(fd, "", &found->handle, &mount_id, AT_EMPTY_PATH);
}

/** FNV-1a with a final mix: handles differ in few bits. A handle identifies a file even when its inode number is reused. */
static uint64_t key_of(const struct file_handle *handle) {
  uint64_t key = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)handle->handle_type;
  for (unsigned index = 0; index < handle->handle_bytes; index++) key = (key ^ handle->f_handle[index]) * UINT64_C(0x100000001b3);
  key = (key ^ (key >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
  key ^= key >> 29;
  return key == 0 ? 1 : key;
}

static struct node *node_in_bucket(const struct nodes *nodes, const struct stat *status) {
  struct node *node = *bucket_of((struct nodes *)nodes, status->st_dev, status->st_ino);
  while (node != NULL && (node->device != status->st_dev || node->inode != status->st_ino)) node = node->next;
  return node;
}

struct node *known_node(const struct nodes *nodes, int fd, const struct stat *status, uint64_t *key) {
  union any_handle found;
  *key = read_handle(fd, &found) < 0 ? 0 : key_of(&found.handle);
  struct node *node = node_in_bucket(nodes, status);
  return node != NULL && node->key == *key ? node : NULL;
}

static void take_out(struct nodes *nodes, const struct node *node) {
  struct node **link = bucket_of(nodes, node->device, node->inode);
  while (*link != NULL && *link != node) link = &(*link)->next;
  if (*link == node) *link = node->next;
}

static bool is_same(const struct file_handle *a, const struct file_handle *b) {
  return a->handle_type == b->handle_type && a->handle_bytes == b->handle_bytes &&
         memcmp(a->f_handle, b->f_handle, a->handle_bytes) == 0;
}

struct node *remember(struct nodes *nodes, int fd, const struct stat *status) {
  union any_handle found;
  if (read_handle(fd, &found) < 0) return NULL;
  struct node *node = node_in_bucket(nodes, status);
  if (node != NULL && !is_same(&node->handle, &found.handle)) {
    // The inode number was reused while the kernel still remembers the old file.
    take_out(nodes, node);
    node = NULL;
  }
  if (node == NULL) {
    size_t handle_size = sizeof found.handle + found.handle.handle_bytes;
    node = calloc(1, sizeof *node + found.handle.handle_bytes);
    if (node == NULL) return NULL;
    node->device = status->st_dev;
    node->inode = status->st_ino;
    node->key = key_of(&found.handle);
    memcpy(&node->handle, &found.handle, handle_size);
    struct node **bucket = bucket_of(nodes, node->device, node->inode);
    node->next = *bucket;
    *bucket = node;
  }
  node->lookups++;
  return node;
}

void forget(struct nodes *nodes, struct node *node, uint64_t lookups) {
  node->lookups -= lookups < node->lookups ? lookups : node->lookups;
  if (node->lookups > 0 || node->open_count > 0 || node == nodes->root) return;
  take_out(nodes, node);
  free(node);
}
