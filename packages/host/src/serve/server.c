#include "serve/server.h"

#include <fcntl.h>

int open_node(const struct server *server, const struct node *node, int flags) {
  return open_by_handle_at(server->anchor, (struct file_handle *)&node->handle, flags | O_NOFOLLOW | O_CLOEXEC);
}
