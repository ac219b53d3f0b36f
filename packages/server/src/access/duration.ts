import { PlatformError } from '@svc/contract/errors';

const UNIT_SECONDS = {
  s: 1,
  m: 60,
  h: 60 * 60,
  d: 24 * 60 * 60,
  w: 7 * 24 * 60 * 60,
  mo: 30 * 24 * 60 * 60,
  y: 365 * 24 * 60 * 60,
} as const;

/** Times are stored and compared as text, which works for years of four digits. */
const LAST_MOMENT_MS = Date.UTC(9999, 11, 31);

/** A number and a unit, from now on. @throws PlatformError `invalid_request` that names the units, or how long it may be */
export function parseDurationMs(text: string): number {
  const match = /^(\d{1,12})(s|m|h|d|w|mo|y)$/.exec(text);
  const unit = match?.[2] as keyof typeof UNIT_SECONDS | undefined;
  const durationMs = unit === undefined ? 0 : Number(match?.[1]) * UNIT_SECONDS[unit] * 1000;
  if (durationMs > 0 && Date.now() + durationMs <= LAST_MOMENT_MS) return durationMs;
  if (durationMs > 0) {
    const message = `'${text}' from now is after the year 9999: give a shorter time, or none for what never expires`;
    throw new PlatformError('invalid_request', message);
  }
  const units = 's seconds, m minutes, h hours, d days, w weeks, mo months, y years';
  throw new PlatformError('invalid_request', `'${text}' is no duration: give a number and a unit (${units})`);
}

/** Null: never. */
export function expiryAfter(duration: string | undefined): string | null {
  return duration === undefined ? null : new Date(Date.now() + parseDurationMs(duration)).toISOString();
}
