import { setTimeout as delay } from 'node:timers/promises';

/**
 * Sleeps to shared ticks, so that periodic tasks wake the process together. All pauses of one length end at the same moments, in
 * every process of a host, and those of a multiple of it at some of these: an idle process wakes once for all of its tasks. A
 * pause lasts between half and one and a half times as long as asked for. Ends early, and does not reject, when the signal aborts.
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

/** Milliseconds to the multiple of `milliseconds` that is nearest to that long from now. Exported for its test. */
export function remaining(milliseconds: number, now: number): number {
  return Math.round(now / milliseconds + 1) * milliseconds - now;
}
