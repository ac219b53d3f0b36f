import { setTimeout as delay } from 'node:timers/promises';

export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error(`Still not true after ${timeoutMs} ms: ${condition.toString()}`);
    await delay(10);
  }
}
