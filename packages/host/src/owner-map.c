#include "owner-map.h"

/** The guest id with the stored id that `shown` would have; `shown` itself when there is none. */
static uint32_t partner(const struct owner_map *map) {
  uint32_t offset = map->disk_owner - map->disk_base;
  return map->disk_owner >= map->disk_base && offset < IDS_PER_SANDBOX ? offset : map->shown;
}

bool stored_id(const struct owner_map *map, uint32_t host_id, uint32_t *stored) {
  if (host_id < map->id_base || host_id - map->id_base >= IDS_PER_SANDBOX) return false;
  uint32_t guest_id = host_id - map->id_base;
  if (guest_id == map->shown) {
    *stored = map->disk_owner;
  } else {
    *stored = map->disk_base + (guest_id == partner(map) ? map->shown : guest_id);
  }
  return true;
}

bool host_id(const struct owner_map *map, uint32_t stored, uint32_t *host_id) {
  if (stored == map->disk_owner) {
    *host_id = map->id_base + map->shown;
    return true;
  }
  if (stored < map->disk_base || stored - map->disk_base >= IDS_PER_SANDBOX) return false;
  uint32_t guest_id = stored - map->disk_base;
  if (guest_id == map->shown) {
    if (partner(map) == map->shown) return false;
    guest_id = partner(map);
  }
  *host_id = map->id_base + guest_id;
  return true;
}

static size_t add_range(struct id_range *ranges, size_t count, struct id_range range) {
  if (range.length == 0) return count;
  ranges[count] = range;
  return count + 1;
}

size_t ranges_of(const struct owner_map *map, struct id_range ranges[MAX_RANGES]) {
  uint32_t other = partner(map);
  uint32_t first = other < map->shown ? other : map->shown;
  uint32_t last = other < map->shown ? map->shown : other;
  size_t count = 0;
  // The ids below, between and above the two exceptions.
  count = add_range(ranges, count, (struct id_range){map->disk_base, map->id_base, first});
  if (last > first + 1) {
    count = add_range(ranges, count, (struct id_range){map->disk_base + first + 1, map->id_base + first + 1, last - first - 1});
  }
  uint32_t above = IDS_PER_SANDBOX - 1 - last;
  count = add_range(ranges, count, (struct id_range){map->disk_base + last + 1, map->id_base + last + 1, above});
  count = add_range(ranges, count, (struct id_range){map->disk_owner, map->id_base + map->shown, 1});
  if (other == map->shown) return count;
  return add_range(ranges, count, (struct id_range){map->disk_base + map->shown, map->id_base + other, 1});
}
