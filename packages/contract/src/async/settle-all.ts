/** Like `Promise.all`, but settles only after all promises have; of several failures it rejects with the first by position. */
export async function settleAll<const Work extends readonly unknown[]>(
  work: Work,
): Promise<{ -readonly [Place in keyof Work]: Awaited<Work[Place]> }> {
  const ends = await Promise.allSettled(work);
  const values = ends.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
  // One value per promise, in the same order.
  return values as { -readonly [Place in keyof Work]: Awaited<Work[Place]> };
}
