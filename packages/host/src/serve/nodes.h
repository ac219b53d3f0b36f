#ifndef SVC_SERVE_NODES_H
#define SVC_SERVE_NODES_H

/** Handles are a GNU extension: the including file has to define _GNU_SOURCE. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

/**
 * A file or folder that the kernel remembers. It is stored as a handle, not as an open descriptor: a guest that walks a large tree
 * makes the kernel remember all of it, as many nodes as fit into the guest's memory.
 */
struct node {
  struct node *next;
  uint64_t device, inode;
  uint64_t lookups;
  uint32_t open_count;
  // Identifies this very file, also after the kernel has forgotten it; never 0.
  uint64_t key;
  struct file_handle handle;
};

enum { BUCKETS = 65536 };

struct nodes {
  struct node *root;
  struct node *buckets[BUCKETS];
};

/** `id` is the node id that the kernel got before. */
struct node *find_node(const struct nodes *nodes, uint64_t id);
uint64_t node_id(const struct nodes *nodes, const struct node *node);

/** The node of an opened file, made when it is new. NULL with errno. */
struct node *remember(struct nodes *nodes, int fd, const struct stat *status);

/** The node of this very file if the kernel remembers it, and in any case its key (0 when it has none). */
struct node *known_node(const struct nodes *nodes, int fd, const struct stat *status, uint64_t *key);

/** The kernel forgets that many lookups. */
void forget(struct nodes *nodes, struct node *node, uint64_t lookups);

#endif
