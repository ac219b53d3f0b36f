import type { Logger } from 'pino';
import type { Journal } from './journal.ts';
import { inWords } from './step-timer.ts';

/** Slower stops are logged by the engine too. Most time usually goes into `processes` (those that ignore SIGTERM) and into writing data. */
const LONG_MS = 2000;

/** Logs the duration of each step of a stop: in the sandbox's log, and in the engine's log when it took long. */
export function noteStop(
  logger: Pick<Logger, 'warn'>,
  journal: Pick<Journal, 'note'>,
  handle: string,
  timings: Readonly<Record<string, number>>,
): void {
  journal.note('debug', `its run has been ended: ${inWords(timings)}`);
  if ((timings['total'] ?? 0) >= LONG_MS) logger.warn({ handle, timings }, 'a stop took long');
}
