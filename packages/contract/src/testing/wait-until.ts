import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  readonly what?: string;
  readonly timeoutMs?: number;
}

const MIN_PAUSE_MS = 10;
const MAX_PAUSE_MS = 200;

/**
 * Polls until the condition holds: for state changes without an event. The pauses grow with the time waited, because polls
 * slow down what they wait for, and add at most a tenth to the wait.
 * @throws when it does not hold in time; the limit allows for a busy machine
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  about: string | WaitOptions = {},
): Promise<void> {
  const { what = condition.toString(), timeoutMs = 60_000 } =
    typeof about === 'string' ? { what: about } : about;
  const begun = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - begun;
    if (waitedMs > timeoutMs) throw new Error(`after ${timeoutMs} ms still waiting until ${what}`);
    await delay(Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, waitedMs / 10)));
  }
}
