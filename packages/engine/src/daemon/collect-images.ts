import type { Logger } from 'pino';
import type { Images } from '../images/images.ts';

const FIRST_MS = 5 * 60_000;
const EVERY_MS = 60 * 60_000;

/** Removes now and then what nobody has used for so long; null: nothing. @returns timers for the caller to clear */
export function collectImages(
  images: Pick<Images, 'collect'>,
  keepMs: number | null,
  logger: Logger,
  { firstMs, everyMs } = { firstMs: FIRST_MS, everyMs: EVERY_MS },
): readonly NodeJS.Timeout[] {
  if (keepMs === null) return [];
  const collect = async () => {
    const removed = await images.collect(keepMs);
    if (removed.length > 0) logger.info({ images: removed }, 'removed images that nobody uses');
  };
  // What fails now, on a full disk for one, is tried again.
  const run = () =>
    void collect().catch((error: unknown) => logger.warn({ error }, 'images were not collected'));
  return [setTimeout(run, firstMs).unref(), setInterval(run, everyMs).unref()];
}
