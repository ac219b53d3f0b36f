import type { Logger } from 'pino';

/**
 * Until the timer is cleared. A round that fails does not end the engine: a host that is short of something recovers, and the next round
 * tries again. Of failures in a row the first is logged.
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
