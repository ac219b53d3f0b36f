import { setTimeout as delay } from 'node:timers/promises';

/**
 * Between two turns of what goes on by itself. All pauses of one length end at the same moments, those of a multiple of it at some of
 * them, in every process of a host: an idle one wakes once for all that it does, and while others ask it something. A pause lasts
 * between half and one and a half times as long as asked for. Ends early, and does not reject, when the signal aborts.
 */
export async function pause(
  milliseconds: number,
  signal: AbortSignal,
  options: { readonly keepsProcess?: boolean } = {},
): Promise<void> {
  const [seconds, nanoseconds] = process.hrtime();
  const left = remaining(milliseconds, seconds * 1000 + nanoseconds / 1e6);
  await delay(left, undefined, { signal, ref: options.keepsProcess ?? true }).catch(() => undefined);
}

/** Until the nearest moment to `milliseconds` from now that is a multiple of it. Exported for its test. */
export function remaining(milliseconds: number, now: number): number {
  return Math.round(now / milliseconds + 1) * milliseconds - now;
}
