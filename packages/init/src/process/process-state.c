#include "process/process-state.h"

enum { STATE_PAIRS = 11 };

static void write_optional(struct writer *payload, const char *key, bool is_set, int64_t value) {
  if (is_set) return write_int_pair(payload, key, value);
  write_text(payload, key);
  write_null(payload);
}

void process_state_write(struct writer *payload, const char *key, const struct process *process, const char *reason,
                         const struct ring rings[2], size_t extra) {
  bool is_over = process->is_finished;
  write_map(payload, STATE_PAIRS + extra);
  write_text_pair(payload, "key", key);
  write_uint_pair(payload, "pid", (uint64_t)process->pid);
  write_text_pair(payload, "state", is_over ? "exited" : "running");
  write_optional(payload, "code", is_over, process_code(process));
  write_optional(payload, "signal", is_over && process_signal_number(process), process_signal_number(process));
  write_text_pair(payload, "reason", is_over ? reason : NULL);
  write_uint_pair(payload, "stdout", ring_end(&rings[0]));
  write_uint_pair(payload, "stderr", ring_end(&rings[1]));
  write_bool_pair(payload, "tty", process->tty);
  write_uint_pair(payload, "started_at_ns", process->started_ns);
  write_optional(payload, "exited_at_ns", is_over, (int64_t)process->exited_ns);
}
