#include "process/launch.h"

#include <string.h>

static const struct field fields[] = {
    FIELD(struct launch, cmd, field_string, true),
    FIELD(struct launch, args, field_strings, false),
    FIELD(struct launch, env, field_strings, false),
    FIELD(struct launch, cwd, field_string, false),
    FIELD(struct launch, user, field_string, false),
    FIELD(struct launch, tty, field_bool, false),
    FIELD(struct launch, rows, field_uint, false),
    FIELD(struct launch, cols, field_uint, false),
    FIELD(struct launch, rlimits, field_limits, false),
    // Only durable and detached processes have a key.
    FIELD(struct launch, key, field_string, true),
    // Only detached processes have these.
    FIELD(struct launch, stdin, field_bool, false),
    FIELD(struct launch, timeout_ms, field_uint, false),
    FIELD(struct launch, ring_bytes, field_uint, false),
    FIELD(struct launch, output_max, field_uint, false),
    FIELD(struct launch, stdin_fd, field_uint, false),
    FIELD(struct launch, repeat, field_bool, false),
    FIELD(struct launch, spare, field_bool, false),
};
static const size_t field_counts[] = {[LAUNCH_EXEC] = 9, [LAUNCH_DURABLE] = 10, [LAUNCH_DETACHED] = COUNT(fields)};

bool launch_read(struct launch *launch, struct reader *payload, enum launch_kind kind) {
  *launch = (struct launch){.rows = 24, .cols = 80, .stdin = kind == LAUNCH_EXEC, .ring_bytes = DETACHED_RING};
  bool ok = read_fields(payload, &launch->arena, fields, field_counts[kind], launch);
  return ok && launch->env.count <= ENV_MAX && launch->rows <= UINT16_MAX && launch->cols <= UINT16_MAX &&
         strlen(launch->cmd) > 0 && launch->stdin_fd <= STDIN_FD_MAX &&
         (!launch->stdin_fd || (launch->stdin_fd > 2 && !launch->tty)) && launch->ring_bytes >= DETACHED_RING_MIN &&
         launch->ring_bytes <= DETACHED_RING_MAX && (!launch->key || (launch->key[0] && strlen(launch->key) <= KEY_MAX));
}

void launch_free(struct launch *launch) { arena_free(&launch->arena); }

int resource_named(struct span name) {
  static const struct {
    const char *name;
    int resource;
  } table[] = {
      {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},
      {"data", RLIMIT_DATA},       {"fsize", RLIMIT_FSIZE},       {"locks", RLIMIT_LOCKS},
      {"memlock", RLIMIT_MEMLOCK}, {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
      {"nofile", RLIMIT_NOFILE},   {"nproc", RLIMIT_NPROC},       {"rss", RLIMIT_RSS},
      {"rtprio", RLIMIT_RTPRIO},   {"rttime", RLIMIT_RTTIME},     {"sigpending", RLIMIT_SIGPENDING},
      {"stack", RLIMIT_STACK},
  };
  for (size_t i = 0; i < COUNT(table); i++) {
    if (span_is(name, table[i].name)) return table[i].resource;
  }
  return -1;
}

void field_limits(struct reader *reader, struct arena *arena, void *target) {
  (void)arena;
  struct limits *limits = target;
  struct container array = read_array(reader);
  limits->count = 0;
  while (read_next(reader, &array)) {
    struct limit limit = {.resource = -1};
    uint64_t soft = RLIM_INFINITY, hard = RLIM_INFINITY;
    bool has_soft = false, has_hard = false;
    struct container map = read_map(reader);
    while (read_next(reader, &map)) {
      struct span key = read_text(reader);
      if (span_is(key, "resource")) limit.resource = resource_named(read_text(reader));
      else if (span_is(key, "soft")) soft = read_uint(reader), has_soft = true;
      else if (span_is(key, "hard")) hard = read_uint(reader), has_hard = true;
      else read_skip(reader);
    }
    bool ok = limit.resource >= 0 && has_soft && has_hard && soft <= hard && limits->count < LIMITS_MAX;
    if (!ok) reader->bad = true;
    if (reader->bad) return;
    limit.soft = soft;
    limit.hard = hard;
    limits->at[limits->count++] = limit;
  }
}
