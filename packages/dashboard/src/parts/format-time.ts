const UNITS = [
  ['year', 31_557_600_000],
  ['month', 2_629_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;
const SOON_MS = 45_000;

/** `3 minutes ago`, `in 2 days`. */
export function ago(at: string, now: number): string {
  const difference = Date.parse(at) - now;
  if (Math.abs(difference) < SOON_MS) return 'just now';
  const [unit, length] = UNITS.find(([, ms]) => Math.abs(difference) >= ms) ?? ['minute', 60_000];
  const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  return words.format(Math.trunc(difference / length) || Math.sign(difference), unit);
}

/** Date and time in the viewer's time zone. */
export function inFull(at: string): string {
  return new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }).format(
    new Date(at),
  );
}

/** `2030-01-05` → `Jan 5`: a UTC day of the bill, in every time zone. */
export function formatDay(day: string): string {
  return new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' }).format(
    new Date(`${day}T00:00:00Z`),
  );
}

/** A duration: `1d 4h`, `3m 20s`. */
export function formatSpan(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([amount]) => amount > 0);
  if (first < 0) return '0s';
  return parts
    .slice(first, first + 2)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(' ');
}
