const TRIED_SECONDS = [0.3, 3] as const;
const MOST_SECONDS = 30;

/**
 * For what must be cut off after it has begun: how soon it begins is up to the machine. Tries longer and longer limits until one
 * was long enough; the outcome of the longest is told whatever it is.
 */
export async function withEnoughTime<Outcome>(
  act: (seconds: number) => Promise<Outcome>,
  hasBegun: (outcome: Outcome) => boolean,
): Promise<{ readonly seconds: number; readonly outcome: Outcome }> {
  for (const seconds of TRIED_SECONDS) {
    const outcome = await act(seconds);
    if (hasBegun(outcome)) return { seconds, outcome };
  }
  return { seconds: MOST_SECONDS, outcome: await act(MOST_SECONDS) };
}
