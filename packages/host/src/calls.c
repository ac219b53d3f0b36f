#include "calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bind.h"
#include "copy.h"
#include "freeze.h"
#include "image.h"
#include "launch.h"
#include "loop.h"
#include "namespaces.h"
#include "overlay.h"
#include "owner-map.h"
#include "precision.h"
#include "unmount.h"

/** Host ids below this belong to the host's own users. */
enum { LOWEST_ID_BASE = 65536 };
enum { NAMESPACE_ARGUMENTS = 3 };
/** A mount point, and the folder made for it. */
enum { MOST_FOLDERS = 2 };
static const uint32_t HIGHEST_ID_BASE = UINT32_MAX - IDS_PER_SANDBOX;

static int parse_id_base(const char *text, uint32_t *id_base, struct failure *failure) {
  return parse_number(text, LOWEST_ID_BASE, HIGHEST_ID_BASE, id_base, failure);
}

/** userPath networkPath idBase [hostInterface address gateway mtu mac [address6 gateway6]] */
static int call_create_namespaces(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  const char *const *arguments = request->arguments;
  uint32_t id_base;
  struct link_plan link;
  size_t parts = request->argument_count - NAMESPACE_ARGUMENTS;
  bool has_link = parts > 0;
  if (check_path(arguments[0], failure) < 0 || check_path(arguments[1], failure) < 0) return -1;
  if (parse_id_base(arguments[2], &id_base, failure) < 0) return -1;
  if (has_link && parse_link_plan(arguments + NAMESPACE_ARGUMENTS, parts, &link, failure) < 0) return -1;
  return create_namespaces(arguments[0], arguments[1], id_base, has_link ? &link : NULL, failure);
}

/** userPath networkPath */
static int call_remove_namespaces(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  if (check_path(request->arguments[0], failure) < 0 || check_path(request->arguments[1], failure) < 0) return -1;
  int network = remove_pin(request->arguments[1], failure);
  int user = remove_pin(request->arguments[0], failure);
  return network == 0 && user == 0 ? 0 : -1;
}

/** name */
static int call_delete_link(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  if (check_interface_name(request->arguments[0], failure) < 0) return -1;
  return delete_link(request->arguments[0], failure);
}

/** target upper work userPath idBase layer… */
static int call_mount_overlay(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  const char *const *arguments = request->arguments;
  struct overlay_plan plan = {
      .target = arguments[0],
      .upper = arguments[1],
      .work = arguments[2],
      .user_path = arguments[3],
      .layer_count = request->argument_count - 5,
      .layers = arguments + 5,
  };
  for (size_t index = 0; index < request->argument_count; index++) {
    if (index != 4 && check_path(arguments[index], failure) < 0) return -1;
  }
  if (parse_id_base(arguments[4], &plan.id_base, failure) < 0) return -1;
  return mount_overlay(&plan, failure);
}

/** image target fstype readonly volatile */
static int call_mount_image(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  const char *const *arguments = request->arguments;
  struct image_plan plan = {.image = arguments[0], .target = arguments[1], .fstype = arguments[2]};
  if (check_path(plan.image, failure) < 0 || check_path(plan.target, failure) < 0) return -1;
  if (parse_flag(arguments[3], &plan.readonly, failure) < 0) return -1;
  if (parse_flag(arguments[4], &plan.is_volatile, failure) < 0) return -1;
  return mount_image(&plan, failure);
}

/** off|relaxed|strict private|mirror */
static int parse_overlay(const char *kind, const char *permissions, struct stat_plan *overlay, struct failure *failure) {
  if (strcmp(kind, "strict") == 0) overlay->kind = STAT_STRICT;
  else if (strcmp(kind, "relaxed") == 0) overlay->kind = STAT_RELAXED;
  else if (strcmp(kind, "off") != 0) return fail_with(failure, EINVAL, "an overlay is strict, relaxed or off");
  overlay->is_mirrored = strcmp(permissions, "mirror") == 0;
  if (overlay->is_mirrored || strcmp(permissions, "private") == 0) return 0;
  return fail_with(failure, EINVAL, "permissions are private or mirrored");
}

/** stored uid gid quota overlay permissions */
static int parse_owner(const char *const owner[6], struct bind_plan *plan, struct failure *failure) {
  if (strcmp(owner[0], "volume") == 0) plan->stored_as = STORED_AS_VOLUME;
  else if (strcmp(owner[0], "folder") == 0) plan->stored_as = STORED_AS_FOLDER;
  else return fail_with(failure, EINVAL, "an owner is that of a volume or a folder");
  if (parse_number(owner[1], 0, IDS_PER_SANDBOX - 1, &plan->owner_uid, failure) < 0) return -1;
  if (parse_number(owner[2], 0, IDS_PER_SANDBOX - 1, &plan->owner_gid, failure) < 0) return -1;
  if (parse_number(owner[3], 0, UINT32_MAX, &plan->quota_mib, failure) < 0) return -1;
  return parse_overlay(owner[4], owner[5], &plan->overlay, failure);
}

/** root path target readonly noexec [userPath idBase [stored uid gid quota overlay permissions]] */
static int call_bind(const struct request *request, struct answer *answer, struct failure *failure) {
  const char *const *arguments = request->arguments;
  size_t count = request->argument_count;
  struct bind_plan plan = {.root = arguments[0], .path = arguments[1], .target = arguments[2]};
  if (count != 5 && count != 7 && count != 13) return fail_with(failure, EINVAL, "a mapping has two parts, an owner six");
  if (check_path(plan.root, failure) < 0 || check_path(plan.target, failure) < 0) return -1;
  if (parse_flag(arguments[3], &plan.readonly, failure) < 0) return -1;
  if (parse_flag(arguments[4], &plan.noexec, failure) < 0) return -1;
  if (count >= 7) {
    plan.user_path = arguments[5];
    if (check_path(plan.user_path, failure) < 0 || parse_id_base(arguments[6], &plan.id_base, failure) < 0) return -1;
  }
  if (count == 13 && parse_owner(arguments + 7, &plan, failure) < 0) return -1;
  return bind_inside(&plan, &answer->text, failure);
}

/** target [folders] */
static int call_unmount(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  const char *target = request->arguments[0];
  uint32_t folders = 0;
  if (check_path(target, failure) < 0) return -1;
  if (request->argument_count > 1 && parse_number(request->arguments[1], 0, MOST_FOLDERS, &folders, failure) < 0) return -1;
  return unmount_all(target, failure) < 0 ? -1 : remove_folders(target, folders, failure);
}

/** from to */
static int call_copy_sparse(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  if (check_path(request->arguments[0], failure) < 0 || check_path(request->arguments[1], failure) < 0) return -1;
  return copy_sparse(request->arguments[0], request->arguments[1], NULL, failure);
}

/** image device */
static int call_write_directly(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  if (check_path(request->arguments[0], failure) < 0 || check_path(request->arguments[1], failure) < 0) return -1;
  return write_directly(request->arguments[1], request->arguments[0], failure);
}

static int parse_disk(const char *const arguments[3], struct frozen_disk *disk, struct failure *failure) {
  *disk = (struct frozen_disk){.image = arguments[0], .device = arguments[1], .mark = arguments[2]};
  for (size_t index = 0; index < 3; index++) {
    if (check_path(arguments[index], failure) < 0) return -1;
  }
  return 0;
}

/** image device mark to mostMs */
static int call_copy_frozen(const struct request *request, struct answer *answer, struct failure *failure) {
  static _Thread_local char text[24];
  const char *const *arguments = request->arguments;
  struct frozen_disk disk;
  uint32_t most_ms;
  uint64_t frozen_us = 0;
  if (parse_disk(arguments, &disk, failure) < 0 || check_path(arguments[3], failure) < 0) return -1;
  if (parse_number(arguments[4], 1, UINT32_MAX, &most_ms, failure) < 0) return -1;
  if (copy_frozen(&disk, arguments[3], most_ms, &frozen_us, failure) < 0) return -1;
  snprintf(text, sizeof text, "%" PRIu64, frozen_us);
  answer->text = text;
  return 0;
}

/** image device mark */
static int call_thaw(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  struct frozen_disk disk;
  if (parse_disk(request->arguments, &disk, failure) < 0) return -1;
  return thaw(&disk, failure);
}

/** name streams cover claim count variable… program argument… */
static int call_launch(const struct request *request, struct answer *answer, struct failure *failure) {
  const char *const *arguments = request->arguments;
  uint32_t variables;
  struct launch_plan plan = {
      .id = request->id,
      .name = arguments[0],
      .has_closed_streams = strcmp(arguments[1], "closed") == 0,
      .cover = *arguments[2] == '\0' ? NULL : arguments[2],
      .claim = *arguments[3] == '\0' ? NULL : arguments[3],
      .environment = arguments + 5,
  };
  if (!plan.has_closed_streams && strcmp(arguments[1], "null") != 0) {
    return fail_with(failure, EINVAL, "streams are null or closed");
  }
  if (plan.cover != NULL && check_path(plan.cover, failure) < 0) return -1;
  if (plan.claim != NULL && check_path(plan.claim, failure) < 0) return -1;
  // At least one argument is left for the program.
  if (parse_number(arguments[4], 0, (uint32_t)request->argument_count - 6, &variables, failure) < 0) return -1;
  plan.environment_count = variables;
  plan.command_count = request->argument_count - 5 - variables;
  plan.command = plan.environment + variables;
  if (start_launch(&plan, failure) < 0) return -1;
  answer->is_deferred = true;
  return 0;
}

/** name */
static int call_end_launch(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  (void)failure;
  end_launch(request->arguments[0]);
  return 0;
}

/** folder */
static int call_find_claim(const struct request *request, struct answer *answer, struct failure *failure) {
  bool is_claimed;
  if (check_path(request->arguments[0], failure) < 0) return -1;
  if (find_claim(request->arguments[0], &is_claimed, failure) < 0) return -1;
  answer->text = is_claimed ? "1" : "0";
  return 0;
}

/** slackNs interrupt pid… */
static int call_set_precision(const struct request *request, struct answer *answer, struct failure *failure) {
  (void)answer;
  const char *const *arguments = request->arguments;
  uint32_t slack_ns;
  bool is_interrupt;
  if (parse_number(arguments[0], 1, UINT32_MAX, &slack_ns, failure) < 0) return -1;
  if (parse_flag(arguments[1], &is_interrupt, failure) < 0) return -1;
  for (size_t index = 2; index < request->argument_count; index++) {
    uint32_t pid;
    if (parse_number(arguments[index], 1, INT32_MAX, &pid, failure) < 0) return -1;
    if (set_precision((pid_t)pid, slack_ns, is_interrupt, failure) < 0) return -1;
  }
  return 0;
}

static const struct {
  const char *name;
  size_t least_arguments;
  size_t most_arguments;
  int (*run)(const struct request *, struct answer *, struct failure *);
} CALLS[] = {
    {"createNamespaces", NAMESPACE_ARGUMENTS, NAMESPACE_ARGUMENTS + LINK_ARGUMENTS_WITH_IPV6, call_create_namespaces},
    {"removeNamespaces", 2, 2, call_remove_namespaces},
    {"deleteLink", 1, 1, call_delete_link},
    {"mountOverlay", 6, 5 + MAX_LAYERS, call_mount_overlay},
    {"mountImage", 5, 5, call_mount_image},
    {"bind", 5, 13, call_bind},
    {"unmount", 1, 2, call_unmount},
    {"copySparse", 2, 2, call_copy_sparse},
    {"copyFrozen", 5, 5, call_copy_frozen},
    {"thaw", 3, 3, call_thaw},
    {"writeDirectly", 2, 2, call_write_directly},
    {"launch", 6, MAX_ARGUMENTS, call_launch},
    {"endLaunch", 1, 1, call_end_launch},
    {"findClaim", 1, 1, call_find_claim},
    {"setPrecision", 3, MAX_ARGUMENTS, call_set_precision},
};

int run_call(const struct request *request, struct answer *answer, struct failure *failure) {
  for (size_t index = 0; index < sizeof CALLS / sizeof *CALLS; index++) {
    if (strcmp(CALLS[index].name, request->call) != 0) continue;
    size_t count = request->argument_count;
    if (count < CALLS[index].least_arguments || count > CALLS[index].most_arguments) {
      return fail_with(failure, EINVAL, "wrong number of arguments");
    }
    return CALLS[index].run(request, answer, failure);
  }
  return fail_with(failure, ENOSYS, "there is no such call");
}
