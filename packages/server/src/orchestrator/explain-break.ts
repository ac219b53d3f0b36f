import { setTimeout as delay } from 'node:timers/promises';
import { ChannelError, PlatformError, type ChannelClient } from '@svc/contract';

/**
 * For how long somebody whose channel broke waits for the reason: for a sandbox that does not answer, and for one that is seen
 * to end, which on a busy host takes seconds, with everything that it had.
 */
export interface BreakPatience {
  readonly silentMs: number;
  readonly endingMs: number;
}

const PATIENCE: BreakPatience = { silentMs: 5000, endingMs: 30_000 };
const PING_MS = 1000;
const AGAIN_MS = 25;

/**
 * Why the channel to a sandbox broke, as whoever opens a new one is told: it ended, for this reason; the engine is away.
 * Sandboxes that end are seen to run for a moment longer, and a channel that was ready before may be handed out in it, so
 * only an answer counts, or an end with its reason. @returns undefined when the sandbox runs on, or nobody knows
 */
export async function explainBreak(
  open: (signal: AbortSignal) => Promise<ChannelClient>,
  { silentMs, endingMs }: BreakPatience = PATIENCE,
): Promise<unknown> {
  const since = performance.now();
  let ending: PlatformError | undefined;
  for (;;) {
    const leftMs = (ending === undefined ? silentMs : endingMs) - (performance.now() - since);
    if (leftMs <= 0) return ending;
    const patience = AbortSignal.timeout(Math.ceil(leftMs));
    try {
      const channel = await open(patience);
      const ping = AbortSignal.any([patience, AbortSignal.timeout(PING_MS)]);
      await channel.ping({ signal: ping }).finally(() => channel.close());
      return undefined;
    } catch (error) {
      if (isUnsettled(error)) ending = error;
      else if (!patience.aborted && !isBroken(error)) return error;
    }
    await delay(AGAIN_MS);
  }
}

/** It is ending, and nobody can say how yet. */
function isUnsettled(error: unknown): error is PlatformError {
  if (PlatformError.is(error, 'unavailable')) return true;
  return PlatformError.is(error, 'sandbox_not_running') && error.details?.['reason'] === undefined;
}

function isBroken(error: unknown): boolean {
  return error instanceof ChannelError || (error instanceof Error && error.name === 'TimeoutError');
}
