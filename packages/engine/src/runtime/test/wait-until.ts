import { setTimeout } from 'node:timers/promises';

/** Waits for a condition, ten seconds at most. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`still not so after ten seconds: ${what}`);
    await setTimeout(5);
  }
}
