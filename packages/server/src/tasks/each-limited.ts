/** Works on all items, on at most `limit` of them at a time. After a failure no further ones are started. */
export async function eachLimited<Item>(
  items: Iterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  // All workers share this iterator, so every item is taken once.
  const rest = items[Symbol.iterator]();
  let hasFailed = false;
  const draw = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true && !hasFailed; next = rest.next()) {
      try {
        await work(next.value);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: limit }, draw));
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
