import { setTimeout } from 'node:timers/promises';

const PATIENCE_MS = 60_000;

/** Waits for a condition, for longer than a busy machine stands still. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`still not so after ${PATIENCE_MS} ms: ${what}`);
    await setTimeout(5);
  }
}
