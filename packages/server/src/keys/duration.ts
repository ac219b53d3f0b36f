import { PlatformError } from '@svc/contract';

const UNIT_SECONDS = {
  s: 1,
  m: 60,
  h: 60 * 60,
  d: 24 * 60 * 60,
  w: 7 * 24 * 60 * 60,
  mo: 30 * 24 * 60 * 60,
  y: 365 * 24 * 60 * 60,
} as const;

/** The last moment that a date can say. */
const MAX_TIME_MS = 8.64e15;

/** A number and a unit. @throws PlatformError `invalid_request` that names the units */
export function parseDurationMs(text: string): number {
  const match = /^(\d{1,12})(s|m|h|d|w|mo|y)$/.exec(text);
  const unit = match?.[2] as keyof typeof UNIT_SECONDS | undefined;
  const durationMs = unit === undefined ? 0 : Number(match?.[1]) * UNIT_SECONDS[unit] * 1000;
  if (durationMs > 0 && Date.now() + durationMs <= MAX_TIME_MS) return durationMs;
  const units = 's seconds, m minutes, h hours, d days, w weeks, mo months, y years';
  throw new PlatformError('invalid_request', `'${text}' is no duration: give a number and a unit (${units})`);
}
