#ifndef SVC_SERVE_LEDGER_H
#define SVC_SERVE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The last counted size of each file that the guest has touched. Entries are never evicted: a file system may allocate more
 * blocks for a file at any time (metadata at write-back), and bytes that were never counted must not be credited.
 * 16 bytes for each file, until it is deleted.
 */
struct ledger {
  struct ledger_entry {
    uint64_t key;
    uint64_t bytes;
  } *entries;
  size_t capacity, count;
};

/** False when the file has no entry. */
bool read_ledger(const struct ledger *ledger, uint64_t key, uint64_t *bytes);
void write_ledger(struct ledger *ledger, uint64_t key, uint64_t bytes);
void strike_from_ledger(struct ledger *ledger, uint64_t key);

#endif
