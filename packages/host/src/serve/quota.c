#include "serve/quota.h"

uint64_t used_of(const struct quota *quota) { return quota->growth_bytes > 0 ? (uint64_t)quota->growth_bytes : 0; }

uint64_t room_in(const struct quota *quota) {
  uint64_t used = used_of(quota);
  return used < quota->limit_bytes ? quota->limit_bytes - used : 0;
}

static uint64_t counted(const struct quota *quota, uint64_t key, uint64_t otherwise) {
  uint64_t bytes = otherwise;
  read_ledger(&quota->ledger, key, &bytes);
  return bytes;
}

void count_file(struct quota *quota, uint64_t key, uint64_t before, uint64_t now) {
  quota->growth_bytes += (int64_t)(now - counted(quota, key, before));
  write_ledger(&quota->ledger, key, now);
}

void count_new_file(struct quota *quota, uint64_t key, uint64_t now) {
  quota->growth_bytes += (int64_t)(BYTES_PER_FILE + now);
  write_ledger(&quota->ledger, key, now);
}

void count_gone_file(struct quota *quota, uint64_t key, uint64_t now) {
  quota->growth_bytes -= (int64_t)(BYTES_PER_FILE + counted(quota, key, now));
  strike_from_ledger(&quota->ledger, key);
}
