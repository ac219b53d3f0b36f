import { badField } from './rest-dispatch.ts';

/** Finds days that do not exist, which `Date` would move to the next month. */
const PARTS = /^(\d{4})-(\d{2})-(\d{2})/;

/**
 * Milliseconds since 1970 of an RFC 3339 time from a query. Fractions below a millisecond are cut off.
 * @throws PlatformError `invalid_request` naming the field
 */
export function readTime(field: string, text: string): number {
  const time = Date.parse(text.toUpperCase());
  const year = new Date(time).getUTCFullYear();
  // Times are stored and compared as text, which works for years of four digits.
  if (Number.isNaN(time) || year < 1 || year > 9999 || !isRealDay(text)) {
    throw badField(field, 'must be an RFC 3339 time, like 2026-01-31T00:00:00Z');
  }
  return time;
}

function isRealDay(text: string): boolean {
  const [, year = '', month = '', day = ''] = PARTS.exec(text) ?? [];
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`);
  return date.getUTCDate() === Number(day);
}
