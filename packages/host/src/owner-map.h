#ifndef SVC_OWNER_MAP_H
#define SVC_OWNER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IDS_PER_SANDBOX = 65536 };

/** `length` ids from `inside` on (as stored, or as seen in a namespace) are `outside` and up on the host. */
struct id_range {
  uint32_t inside, outside, length;
};

/**
 * A one-to-one mapping between stored ids and guest ids, for users or for groups. Guest id n is `id_base` + n on the host and
 * is stored as `disk_base` + n; only `disk_owner` is stored for guest id `shown`. If `disk_owner` is one of the former, the two
 * are swapped. So every user of the guest can own files, and none can own one as a user of the host, except as the folder's owner.
 */
struct owner_map {
  uint32_t id_base;
  uint32_t disk_base;
  uint32_t disk_owner;
  uint32_t shown;
};

/** Both false when the id has no counterpart. */
bool stored_id(const struct owner_map *map, uint32_t host_id, uint32_t *stored);
bool host_id(const struct owner_map *map, uint32_t stored, uint32_t *host_id);

/** The same as ranges for a user namespace; returns how many. */
enum { MAX_RANGES = 5 };
size_t ranges_of(const struct owner_map *map, struct id_range ranges[MAX_RANGES]);

#endif
