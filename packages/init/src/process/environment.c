#include "process/environment.h"

#include <stdio.h>
#include <string.h>

#include "process/config.h"

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static bool put(struct arena *, struct strings *, char *pair);
static bool put_value(struct arena *, struct strings *, const char *name, const char *value);
static bool put_path(struct arena *, struct strings *);

char **environment_of(struct launch *launch, const struct identity *identity) {
  struct strings all = {0};
  struct arena *arena = &launch->arena;
  bool ok = true;
  for (size_t i = 0; ok && i < config.env.count; i++) ok = put(arena, &all, config.env.at[i]);
  for (size_t i = 0; ok && i < launch->env.count; i++) ok = put(arena, &all, launch->env.at[i]);
  ok = ok && put_path(arena, &all);
  if (!environment_get(all.at, "HOME")) ok = ok && put_value(arena, &all, "HOME", identity->home);
  if (config.shell && !environment_get(all.at, "SHELL")) ok = ok && put_value(arena, &all, "SHELL", config.shell);
  if (launch->tty && !environment_get(all.at, "TERM")) ok = ok && put_value(arena, &all, "TERM", "xterm");
  return ok ? all.at : NULL;
}

const char *environment_get(char **environment, const char *name) {
  size_t length = strlen(name);
  for (; environment && *environment; environment++) {
    if (!strncmp(*environment, name, length) && (*environment)[length] == '=') return *environment + length + 1;
  }
  return NULL;
}

/** Adds "K=V"; replaces an earlier pair with the same name. Pairs without a name or "=" are skipped. */
static bool put(struct arena *arena, struct strings *all, char *pair) {
  const char *equals = strchr(pair, '=');
  if (!equals || equals == pair) return true;
  size_t length = (size_t)(equals - pair) + 1;
  for (size_t i = 0; i < all->count; i++) {
    if (!strncmp(all->at[i], pair, length)) return all->at[i] = pair, true;
  }
  return strings_push(arena, all, pair);
}

static bool put_value(struct arena *arena, struct strings *all, const char *name, const char *value) {
  size_t size = strlen(name) + strlen(value) + 2;
  char *pair = arena_take(arena, size);
  if (!pair) return false;
  snprintf(pair, size, "%s=%s", name, value);
  return put(arena, all, pair);
}

static bool put_path(struct arena *arena, struct strings *all) {
  const char *path = environment_get(all->at, "PATH");
  if (!path) path = default_path;
  if (!config.path_prefix) return put_value(arena, all, "PATH", path);
  size_t size = strlen(config.path_prefix) + strlen(path) + 2;
  char *joined = arena_take(arena, size);
  if (!joined) return false;
  snprintf(joined, size, "%s:%s", config.path_prefix, path);
  return put_value(arena, all, "PATH", joined);
}
