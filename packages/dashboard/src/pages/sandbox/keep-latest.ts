const MAX_ENTRIES = 5000;
/** Limit for all entries together, because lines of a sandbox may have any length. */
const MAX_LENGTH = 1_000_000;

/** Appends an entry and drops the oldest ones when there are too many or they are too long; the newest always stays. */
export function keepLatest<Entry>(
  known: readonly Entry[],
  entry: Entry,
  lengthOf: (entry: Entry) => number,
): readonly Entry[] {
  const kept = [...known.slice(1 - MAX_ENTRIES), entry];
  let length = 0;
  const first = kept.findLastIndex((each) => (length += lengthOf(each)) > MAX_LENGTH);
  return kept.slice(Math.min(first + 1, kept.length - 1));
}
