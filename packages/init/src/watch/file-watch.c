#include "watch/file-watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bounds.h"
#include "watch/events.h"
#include "watch/tree.h"

struct request {
  char *path;
  bool recursive;
};

static void over(struct observer *observer) {
  if (observer->root) folder_drop(observer->root);
}

static const struct observer_owner owner = {over, events_close};

static void refuse(struct conn *conn, uint32_t id, int error) {
  char message[128];
  snprintf(message, sizeof message, "watch: %s", strerror(error));
  observer_refuse(conn, id, error, message);
}

/** Takes ownership of the path. */
static void begin(struct conn *conn, uint32_t id, char *path, bool is_recursive) {
  struct stat found;
  struct observer *observer = NULL;
  if (lstat(path, &found) < 0) {
    refuse(conn, id, errno);
  } else if (observer_count() >= WATCHES_MAX || !conn_take_slot(conn)) {
    char message[96];
    snprintf(message, sizeof message, "watch: %d watches of this sandbox are open; end some first", WATCHES_MAX);
    observer_refuse(conn, id, 0,
                    observer_count() >= WATCHES_MAX ? message : "watch: 1024 handles and streams are open; end some first");
  } else if (!events_open()) {
    int error = errno;
    conn_give_slot(conn);
    if (error != EMFILE) refuse(conn, id, error);
    else observer_refuse(conn, id, 0, "watch: the host has no inotify instance left (fs.inotify.max_user_instances)");
  } else if (!(observer = observer_open(conn, id, path, &owner))) {
    conn_give_slot(conn);
    refuse(conn, id, ENOMEM);
  }
  if (!observer) return free(path);
  observer->is_folder = S_ISDIR(found.st_mode);
  observer->is_recursive = is_recursive && observer->is_folder;
  folder_add(observer, NULL, "", false);
}

void file_watch_start(struct conn *conn, struct message *message) {
  static const struct field fields[] = {
      FIELD(struct request, path, field_string, true),
      FIELD(struct request, recursive, field_bool, false),
  };
  struct request request = {0};
  struct arena arena = {0};
  if (session_find(conn, message->id, NULL)) {
    conn_error(conn, message->id, "invalid_session", "this id is in use", NULL);
  } else if (!read_fields(&message->payload, &arena, fields, COUNT(fields), &request)) {
    message->payload.bad = true;
  } else {
    // Resolved: the target of a link as root is watched; links below it are not followed.
    char *path = realpath(request.path, NULL);
    if (path) begin(conn, message->id, path, request.recursive);
    else refuse(conn, message->id, errno);
  }
  arena_free(&arena);
}

void file_watch_stop(struct conn *conn, struct message *message) {
  struct observer *observer = observer_find(conn, message->id);
  if (observer) observer_stop(observer); // it may have ended meanwhile
}
