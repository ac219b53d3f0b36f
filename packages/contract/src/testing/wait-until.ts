import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  readonly what?: string;
  readonly timeoutMs?: number;
}

/**
 * Polls until the condition holds: for state changes without an event.
 * @throws when it does not hold in time; the limit allows for a busy machine
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  about: string | WaitOptions = {},
): Promise<void> {
  const { what = condition.toString(), timeoutMs = 60_000 } =
    typeof about === 'string' ? { what: about } : about;
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`after ${timeoutMs} ms still waiting until ${what}`);
    await delay(10);
  }
}
