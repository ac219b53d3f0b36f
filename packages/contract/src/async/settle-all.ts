/** As `Promise.all`, but over when all of them are: nothing is still at work when a failure is told, the first by its place. */
export async function settleAll<const Work extends readonly unknown[]>(
  work: Work,
): Promise<{ -readonly [Place in keyof Work]: Awaited<Work[Place]> }> {
  const ends = await Promise.allSettled(work);
  const values = ends.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
  // One value for each, in the same order.
  return values as { -readonly [Place in keyof Work]: Awaited<Work[Place]> };
}
