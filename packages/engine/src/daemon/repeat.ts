import type { Logger } from 'pino';

/**
 * Repeats a task until the timer is cleared. A failed round does not end the engine: a resource shortage passes, and the next round
 * tries again. Of consecutive failures only the first is logged.
 */
export function repeat(act: () => void, everyMs: number, logger: Logger): NodeJS.Timeout {
  let hasFailed = false;
  return setInterval(() => {
    try {
      act();
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) logger.warn({ error }, 'a periodic task failed; it is tried again');
      hasFailed = true;
    }
  }, everyMs);
}
