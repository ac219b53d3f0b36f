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

/** The most that one read or write carries. */
enum { MAX_TRANSFER_BYTES = 1024 * 1024 };

/**
 * Serves one folder, or one file, of the host to the kernel, for a guest that must not have it directly (FUSE, single-threaded:
 * what is counted here needs no lock). Access is checked by the kernel against the attributes told here; what this
 * process is asked to do was permitted. It acts as root, so it decides alone as whom files are stored and which bits they may have.
 */
struct server {
  int device;
  // A descriptor on the mount that holds the files: handles are opened relative to it.
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

/** What is asked about. */
static inline struct node *node_of(const struct server *server, const struct call *call) {
  return find_node(&server->nodes, call->header->nodeid);
}

/** A descriptor on a node, or -1 with errno. Of anything but folders and regular files take O_PATH only. */
int open_node(const struct server *server, const struct node *node, int flags);

/** Every answer may be a second old: the host changes the same files. */
enum { VALID_SECONDS = 1 };

#endif
