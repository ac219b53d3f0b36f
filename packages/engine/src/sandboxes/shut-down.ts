import { setTimeout as delay } from 'node:timers/promises';
import type { EndReason } from '../client/engine-api.ts';
import type { Run } from './run.ts';

const GONE_CHECK_MS = 5;

interface ShutDown {
  readonly graceMs: number;
  readonly reason: EndReason | null;
  readonly isAlive: () => Promise<boolean>;
  /** When somebody who cannot wait that long wants it over, by the clock of `performance`. */
  readonly over: () => number;
}

/** Asks svc-init to end everything; returns when it has, or when the grace of whoever waits is over. */
export async function shutDown(run: Run, { graceMs, reason, isAlive, over }: ShutDown): Promise<void> {
  run.wake();
  run.link.notify('svc.shutdown', { grace_ms: graceMs, reason });
  const deadline = performance.now() + graceMs + 1000;
  while (performance.now() < Math.min(deadline, over())) {
    const isGone = !run.link.isConnected && !(await isAlive());
    if (isGone) return await run.link.drain();
    await delay(GONE_CHECK_MS);
  }
}
