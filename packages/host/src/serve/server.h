#ifndef SVC_SERVE_SERVER_H
#define SVC_SERVE_SERVER_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "owner-map.h"
#include "serve/nodes.h"
#include "serve/quota.h"
#include "serve/stat-plan.h"

/** The largest read or write. */
enum { MAX_TRANSFER_BYTES = 1024 * 1024 };

/**
 * A FUSE server of one folder, or one file, of the host, for a guest that must not have it directly (single-threaded:
 * the counters need no lock). The kernel checks access against the attributes from this process, so every request that arrives
 * is permitted. It runs as root, so it alone decides the owners of files and the permitted mode bits.
 */
struct server {
  int device;
  // A descriptor on the mount with the files: handles are opened relative to it.
  int anchor;
  struct owner_map users, groups;
  struct quota quota;
  struct stat_overlay overlay;
  struct nodes nodes;
};

struct call {
  const struct fuse_in_header *header;
  const char *body;
  size_t length;
};

/** `data` is MAX_TRANSFER_BYTES long and aligned for any structure. */
struct reply {
  char *data;
  size_t length;
};

/** Returns 0 with the reply filled in, or an errno. */
typedef int (*handler)(struct server *server, const struct call *call, struct reply *reply);

/** The node of a request. */
static inline struct node *node_of(const struct server *server, const struct call *call) {
  return find_node(&server->nodes, call->header->nodeid);
}

/** A descriptor on a node, or -1 with errno. Use O_PATH for everything but folders and regular files. */
int open_node(const struct server *server, const struct node *node, int flags);

/** The kernel may cache answers for one second, because the host changes the same files. */
enum { VALID_SECONDS = 1 };

#endif
