#include "serve/ledger.h"

#include <stdlib.h>
#include <unistd.h>

/** Open addressing, at most half full; keys are well mixed already and never 0. */
enum { FIRST_CAPACITY = 1024 };

/** The place of the key, or the free place for it. */
static size_t place_of(const struct ledger *ledger, uint64_t key) {
  size_t place = key & (ledger->capacity - 1);
  while (ledger->entries[place].key != 0 && ledger->entries[place].key != key) place = (place + 1) & (ledger->capacity - 1);
  return place;
}

static void grow(struct ledger *ledger) {
  struct ledger larger = {.capacity = ledger->capacity == 0 ? FIRST_CAPACITY : 2 * ledger->capacity, .count = ledger->count};
  larger.entries = calloc(larger.capacity, sizeof *larger.entries);
  // SAFETY: without the ledger the quota would not hold; so the server ends, and the guest loses the folder.
  if (larger.entries == NULL) _exit(1);
  for (size_t place = 0; place < ledger->capacity; place++) {
    if (ledger->entries[place].key != 0) larger.entries[place_of(&larger, ledger->entries[place].key)] = ledger->entries[place];
  }
  free(ledger->entries);
  *ledger = larger;
}

bool read_ledger(const struct ledger *ledger, uint64_t key, uint64_t *bytes) {
  if (ledger->capacity == 0) return false;
  const struct ledger_entry *entry = &ledger->entries[place_of(ledger, key)];
  if (entry->key == 0) return false;
  *bytes = entry->bytes;
  return true;
}

void write_ledger(struct ledger *ledger, uint64_t key, uint64_t bytes) {
  if (2 * (ledger->count + 1) > ledger->capacity) grow(ledger);
  struct ledger_entry *entry = &ledger->entries[place_of(ledger, key)];
  if (entry->key == 0) ledger->count++;
  *entry = (struct ledger_entry){key, bytes};
}

void strike_from_ledger(struct ledger *ledger, uint64_t key) {
  if (ledger->capacity == 0) return;
  size_t mask = ledger->capacity - 1;
  size_t gap = place_of(ledger, key);
  if (ledger->entries[gap].key == 0) return;
  ledger->count--;
  // Following entries move up, so that each is still found from the place of its hash.
  for (size_t place = (gap + 1) & mask; ledger->entries[place].key != 0; place = (place + 1) & mask) {
    size_t wanted = ledger->entries[place].key & mask;
    if (((place - wanted) & mask) < ((place - gap) & mask)) continue;
    ledger->entries[gap] = ledger->entries[place];
    gap = place;
  }
  ledger->entries[gap].key = 0;
}
