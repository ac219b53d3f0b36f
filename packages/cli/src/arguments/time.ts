import { InvalidArgumentError } from 'commander';
import { parseSeconds } from './number.ts';

const LAST_YEAR = 9999;

/** A time (RFC 3339), or how long ago (`90`, `10m`, `1h`, `2d`). */
export function parseTime(text: string): string {
  if (/^\d+[smhd]?$/.test(text)) return new Date(Date.now() - parseSeconds(text) * 1000).toISOString();
  const time = Date.parse(text);
  const year = new Date(time).getUTCFullYear();
  // Servers accept the years that RFC 3339 can express.
  if (Number.isNaN(time) || year < 1 || year > LAST_YEAR)
    throw new InvalidArgumentError('Give a time such as 2026-01-31T12:00:00Z, or 10m for ten minutes ago.');
  return new Date(time).toISOString();
}
