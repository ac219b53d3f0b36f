#include "overlay-from-names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "idmap.h"
#include "privileges.h"

/** mount(2) takes one page of options. */
enum { MAX_OPTION_BYTES = 4096 };

/** In the tmpfs, our working directory: l0, l1, … for the layers, d for the disk, m for the overlay. */
static int place(int mount, const char *name, struct failure *failure) {
  if (mkdir(name, 0700) < 0) return fail(failure, "make a mount point");
  return attach_mount(mount, name, failure);
}

/** MAX_LAYERS names of at most five bytes leave room in a page; only unusually long folder names do not fit. */
static int place_parts(const struct overlay_parts *parts, char *options, struct failure *failure) {
  size_t used = (size_t)snprintf(options, MAX_OPTION_BYTES, "lowerdir=");
  char name[24];
  for (size_t index = 0; index < parts->layer_count; index++) {
    snprintf(name, sizeof name, "l%zu", index);
    if (place(parts->layers[index], name, failure) < 0) return -1;
    used += (size_t)snprintf(options + used, MAX_OPTION_BYTES - used, "%s%s", index == 0 ? "" : ":", name);
  }
  if (place(parts->disk, "d", failure) < 0 || mkdir("m", 0700) < 0) return fail(failure, "make a mount point");
  size_t wanted =
      (size_t)snprintf(options + used, MAX_OPTION_BYTES - used, ",upperdir=d/%s,workdir=d/%s", parts->upper_name, parts->work_name);
  if (wanted >= MAX_OPTION_BYTES - used) return fail_with(failure, E2BIG, "this kernel takes fewer layers");
  return 0;
}

static int mount_named(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure) {
  char options[MAX_OPTION_BYTES];
  if (place_parts(parts, options, failure) < 0) return -1;
  if (act_as(plan->id_base, failure) < 0) return -1;
  int mounted = mount("overlay", "m", "overlay", MS_NODEV | MS_NOSUID, options);
  if (mounted < 0) fail(failure, "mount the overlay");
  act_as_root();
  return mounted < 0 ? -1 : clone_mount(AT_FDCWD, "m", failure);
}

int overlay_from_names(const struct overlay_parts *parts, const struct overlay_plan *plan, struct failure *failure) {
  if (mount("tmpfs", plan->target, "tmpfs", MS_NODEV | MS_NOSUID | MS_NOEXEC, "mode=0700,size=1m") < 0) {
    return fail(failure, "mount a scratch area");
  }
  int overlay = -1;
  // Private, so that mounts below it do not propagate to other mount namespaces.
  if (mount(NULL, plan->target, NULL, MS_PRIVATE, NULL) < 0 || chdir(plan->target) < 0) {
    fail(failure, "enter the scratch area");
  } else {
    overlay = mount_named(parts, plan, failure);
  }
  if (chdir("/") < 0) fail(failure, "leave the scratch area");
  // Detaches the mounts below it, too.
  if (umount2(plan->target, MNT_DETACH | UMOUNT_NOFOLLOW) < 0) fail(failure, "unmount the scratch area");
  if (failure->error == 0) return overlay;
  if (overlay >= 0) close(overlay);
  return -1;
}
