import { InvalidArgumentError } from 'commander';
import { parseSeconds } from './number.ts';

/** A time (RFC 3339), or how long ago (`90`, `10m`, `1h`, `2d`). */
export function parseTime(text: string): string {
  if (/^\d+[smhd]?$/.test(text)) return new Date(Date.now() - parseSeconds(text) * 1000).toISOString();
  const time = Date.parse(text);
  if (Number.isNaN(time))
    throw new InvalidArgumentError('Give a time such as 2026-01-31T12:00:00Z, or 10m for ten minutes ago.');
  return new Date(time).toISOString();
}
