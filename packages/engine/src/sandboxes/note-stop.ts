import type { Logger } from 'pino';
import type { Journal } from './journal.ts';
import { inWords } from './step-timer.ts';

/** After this long a caller notices that it waits for a stop. What takes long is most often `processes`: those that do not heed SIGTERM, and data to be written. */
const LONG_MS = 2000;

/** Says where the time of a stop went: in the sandbox's log for who asked for it, in the engine's when it took long. */
export function noteStop(
  logger: Pick<Logger, 'warn'>,
  journal: Pick<Journal, 'note'>,
  handle: string,
  timings: Readonly<Record<string, number>>,
): void {
  journal.note('debug', `its run has been ended: ${inWords(timings)}`);
  if ((timings['total'] ?? 0) >= LONG_MS) logger.warn({ handle, timings }, 'a stop took long');
}
