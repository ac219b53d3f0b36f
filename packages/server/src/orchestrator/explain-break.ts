import { setTimeout as delay } from 'node:timers/promises';
import { ChannelError, PlatformError, type ChannelClient } from '@svc/contract';

/**
 * How long a caller whose channel broke waits for the reason: if the sandbox does not answer, and if it is ending, which on a busy host
 * takes seconds.
 */
export interface BreakTimeouts {
  readonly silentMs: number;
  readonly endingMs: number;
}

const TIMEOUTS: BreakTimeouts = { silentMs: 5000, endingMs: 30_000 };
const PING_MS = 1000;
const AGAIN_MS = 25;

/**
 * Finds out why the channel to a sandbox broke, from the error of opening a new one: the sandbox ended, and why, or the engine is away.
 * A sandbox that is ending is reported as running for a moment longer, and a prepared channel may still be opened then, so only an
 * answer from inside, or an end with its reason, counts.
 * @returns undefined when the sandbox runs on, or the reason is unknown
 */
export async function explainBreak(
  open: (signal: AbortSignal) => Promise<ChannelClient>,
  { silentMs, endingMs }: BreakTimeouts = TIMEOUTS,
): Promise<unknown> {
  const since = performance.now();
  let ending: PlatformError | undefined;
  for (;;) {
    const leftMs = (ending === undefined ? silentMs : endingMs) - (performance.now() - since);
    if (leftMs <= 0) return ending;
    const deadline = AbortSignal.timeout(Math.ceil(leftMs));
    try {
      const channel = await open(deadline);
      const ping = AbortSignal.any([deadline, AbortSignal.timeout(PING_MS)]);
      await channel.ping({ signal: ping }).finally(() => channel.close());
      return undefined;
    } catch (error) {
      if (isUnsettled(error)) ending = error;
      else if (!deadline.aborted && !isBroken(error)) return error;
    }
    await delay(AGAIN_MS);
  }
}

/** It is ending, and the reason is not known yet. */
function isUnsettled(error: unknown): error is PlatformError {
  if (PlatformError.is(error, 'unavailable')) return true;
  return PlatformError.is(error, 'sandbox_not_running') && error.details?.['reason'] === undefined;
}

function isBroken(error: unknown): boolean {
  return error instanceof ChannelError || (error instanceof Error && error.name === 'TimeoutError');
}
