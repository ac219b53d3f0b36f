#ifndef SVC_OVERLAY_H
#define SVC_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"

struct overlay_plan {
  const char *target;
  const char *upper;
  const char *work;
  const char *user_path;
  uint32_t id_base;
  size_t layer_count;
  const char *const *layers; /* lowest first */
};

/* The kernel's own limit. */
enum { MAX_LAYERS = 500 };

/* Set by `--overlay-by-names`: do as on kernels before 6.15, so that tests cover it on any kernel. */
extern bool overlay_by_names_only;

/* Mounts the layers under upper and work at target, ids mapped, nodev, nosuid. On failure nothing is mounted. */
int mount_overlay(const struct overlay_plan *plan, struct failure *failure);

#endif
