const MAX_ENTRIES = 5000;
/** Of all together: lines may be as long as whoever prints them likes. */
const MAX_LENGTH = 1_000_000;

/** With this one at the end, and without the oldest when they are too many or too long; the newest always stays. */
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
