import { setTimeout as delay } from 'node:timers/promises';

/** Asks again until the answer is yes. @throws when it stays no, for longer than a busy machine stands still. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  options: { readonly timeoutMs?: number; readonly what?: string } = {},
): Promise<void> {
  const { timeoutMs = 60_000, what = 'the condition holds' } = options;
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`after ${timeoutMs} ms still waiting until ${what}`);
    await delay(20);
  }
}
