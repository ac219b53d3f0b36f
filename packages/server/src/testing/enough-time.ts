const TRIED_SECONDS = [0.3, 3] as const;
const MOST_SECONDS = 30;

/**
 * For work that must be cut off after it has begun, on a machine of unknown speed. Tries longer and longer limits until one was long
 * enough; returns the outcome of the longest in any case.
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
