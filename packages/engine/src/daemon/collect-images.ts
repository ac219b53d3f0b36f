import type { Logger } from 'pino';
import type { Images } from '../images/images.ts';

const FIRST_MS = 5 * 60_000;
const EVERY_MS = 60 * 60_000;

/** Removes images that were unused for `keepMs`, hourly; null: never. @returns timers for the caller to clear */
export function collectImages(
  images: Pick<Images, 'collect'>,
  keepMs: number | null,
  logger: Logger,
  { firstMs, everyMs } = { firstMs: FIRST_MS, everyMs: EVERY_MS },
): readonly NodeJS.Timeout[] {
  if (keepMs === null) return [];
  const collect = async () => {
    const removed = await images.collect(keepMs);
    if (removed.length > 0) logger.info({ images: removed }, 'removed unused images');
  };
  // A collection that fails, for instance on a full disk, is tried again.
  const run = () =>
    void collect().catch((error: unknown) => logger.warn({ error }, 'images were not collected'));
  return [setTimeout(run, firstMs).unref(), setInterval(run, everyMs).unref()];
}
