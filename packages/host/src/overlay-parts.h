#ifndef SVC_OVERLAY_PARTS_H
#define SVC_OVERLAY_PARTS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct overlay_plan {
  const char *target;
  const char *upper;
  const char *work;
  const char *user_path;
  uint32_t id_base;
  size_t layer_count;
  const char *const *layers; // lowest first
};

/** The kernel's own limit. */
enum { MAX_LAYERS = 500 };

/**
 * The parts of an overlay: id-mapped, detached copies of the mounts. `disk` is a copy of the folder with both
 * upper and work, because the kernel requires them on one mount.
 */
struct overlay_parts {
  size_t layer_count;
  int layers[MAX_LAYERS]; // topmost first, as the kernel counts
  int disk;
  char disk_folder[PATH_MAX];
  const char *upper_name;
  const char *work_name;
};

#endif
