#ifndef SVC_SERVE_LEDGER_H
#define SVC_SERVE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * How many bytes of each file that the guest has touched were counted last. It must not forget: a file system may give a file more
 * blocks at any time (when it writes out, it adds records of its own), and what was not counted must not be given back.
 * 16 bytes for each file, until it is gone.
 */
struct ledger {
  struct ledger_entry {
    uint64_t key;
    uint64_t bytes;
  } *entries;
  size_t capacity, count;
};

/** False when the file is not in it. */
bool read_ledger(const struct ledger *ledger, uint64_t key, uint64_t *bytes);
void write_ledger(struct ledger *ledger, uint64_t key, uint64_t bytes);
void strike_from_ledger(struct ledger *ledger, uint64_t key);

#endif
