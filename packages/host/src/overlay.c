#include "overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "detached-thread.h"
#include "idmap.h"
#include "overlay-from-descriptors.h"
#include "overlay-from-names.h"

bool overlay_by_names_only = false;

static int split_disk(const struct overlay_plan *plan, struct overlay_parts *parts, struct failure *failure) {
  const char *upper_name = strrchr(plan->upper, '/') + 1;
  const char *work_name = strrchr(plan->work, '/') + 1;
  size_t folder_length = (size_t)(upper_name - plan->upper);
  if (folder_length != (size_t)(work_name - plan->work) || memcmp(plan->upper, plan->work, folder_length) != 0) {
    return fail_with(failure, EINVAL, "upper and work are not side by side");
  }
  // Names with these characters would need escaping in mount options.
  if (strpbrk(upper_name, ",:\\") != NULL || strpbrk(work_name, ",:\\") != NULL || *upper_name == '\0' || *work_name == '\0') {
    return fail_with(failure, EINVAL, "upper or work has an unusual name");
  }
  memcpy(parts->disk_folder, plan->upper, folder_length);
  parts->disk_folder[folder_length] = '\0';
  parts->upper_name = upper_name;
  parts->work_name = work_name;
  return 0;
}

static int clone_mapped(const char *path, int user_namespace, struct failure *failure) {
  int mount = clone_mount(AT_FDCWD, path, failure);
  if (mount < 0) return -1;
  if (map_ids(mount, user_namespace, failure) == 0) return mount;
  close(mount);
  return -1;
}

static int open_parts(const struct overlay_plan *plan, int user_namespace, struct overlay_parts *parts, struct failure *failure) {
  parts->disk = clone_mapped(parts->disk_folder, user_namespace, failure);
  if (parts->disk < 0) return -1;
  for (size_t index = plan->layer_count; index > 0; index--) {
    int layer = clone_mapped(plan->layers[index - 1], user_namespace, failure);
    if (layer < 0) return -1;
    parts->layers[parts->layer_count++] = layer;
  }
  return 0;
}

static void close_parts(const struct overlay_parts *parts) {
  for (size_t index = 0; index < parts->layer_count; index++) close(parts->layers[index]);
  if (parts->disk >= 0) close(parts->disk);
}

static void *close_copy(void *argument) {
  struct overlay_parts *parts = argument;
  close_parts(parts);
  free(parts);
  return NULL;
}

/** Closing a mount waits for an RCU grace period. The overlay exists already, so a thread closes the parts. */
static void close_parts_later(const struct overlay_parts *parts) {
  struct overlay_parts *copy = malloc(sizeof *copy);
  if (copy != NULL) {
    *copy = *parts;
    if (start_detached_thread(close_copy, copy)) return;
    free(copy);
  }
  close_parts(parts);
}

static int make_overlay(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure) {
  struct failure refusal = {0};
  int overlay = overlay_by_names_only ? -1 : overlay_from_descriptors(parts, plan, &refusal);
  // An older kernel may refuse with any error; another cause makes the second implementation fail with the same error.
  return overlay >= 0 ? overlay : overlay_from_names(parts, plan, failure);
}

int mount_overlay(const struct overlay_plan *plan, struct failure *failure) {
  static struct overlay_parts parts;
  parts.layer_count = 0;
  parts.disk = -1;
  if (plan->layer_count == 0 || plan->layer_count > MAX_LAYERS) {
    return fail_with(failure, E2BIG, "an overlay has 1 to %d layers", MAX_LAYERS);
  }
  if (split_disk(plan, &parts, failure) < 0) return -1;
  int user_namespace = open(plan->user_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (user_namespace < 0) return fail(failure, "open the user namespace");
  int overlay = -1;
  if (open_parts(plan, user_namespace, &parts, failure) == 0) overlay = make_overlay(&parts, plan, failure);
  int outcome = overlay < 0 ? -1 : attach_mount(overlay, plan->target, failure);
  if (overlay >= 0) close(overlay);
  if (outcome == 0) {
    close_parts_later(&parts);
  } else {
    close_parts(&parts);
  }
  close(user_namespace);
  return outcome;
}
