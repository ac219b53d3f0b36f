#include "process/shutdown-state.h"

#include <stdio.h>

static bool is_running;
static char reason[32];

void shutdown_mark(void) { is_running = true; }
bool shutdown_is_running(void) { return is_running; }

void shutdown_explain(const char *text) {
  if (!is_running) snprintf(reason, sizeof reason, "%s", text);
}

const char *shutdown_reason(void) { return is_running && reason[0] ? reason : NULL; }
