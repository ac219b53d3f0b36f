import { setTimeout as delay } from 'node:timers/promises';
import { ChannelError, type ChannelClient } from '@svc/contract';

/** For how long somebody whose channel broke waits for the reason, and for one answer of the sandbox. */
const PATIENCE_MS = 5000;
const PING_MS = 1000;
const AGAIN_MS = 25;

/**
 * Why the channel to a sandbox broke, as whoever opens a new one is told: it ended, for this reason; the engine is away.
 * Sandboxes that end are seen to run for a moment longer, and a channel that was ready before may be handed out in it, so
 * only an answer counts. @returns undefined when the sandbox runs on, or nobody knows
 */
export async function explainBreak(open: (signal: AbortSignal) => Promise<ChannelClient>): Promise<unknown> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  while (!patience.aborted) {
    try {
      const channel = await open(patience);
      const ping = AbortSignal.any([patience, AbortSignal.timeout(PING_MS)]);
      await channel.ping({ signal: ping }).finally(() => channel.close());
      return undefined;
    } catch (error) {
      if (patience.aborted) return undefined;
      const isBroken = error instanceof ChannelError || isTimeout(error);
      if (!isBroken) return error;
    }
    await delay(AGAIN_MS);
  }
  return undefined;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}
