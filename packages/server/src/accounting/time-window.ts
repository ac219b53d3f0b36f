import type { StoredWindow } from '../store/usage.ts';

export const DAY_MS = 24 * 60 * 60 * 1000;
export const HOUR_SECONDS = 60 * 60;

/** Milliseconds since 1970; `[fromMs, toMs)`. A stretch without an end counts until `nowMs`. */
export interface TimeWindow {
  readonly fromMs: number;
  readonly toMs: number;
  readonly nowMs: number;
}

/** The calendar month in UTC. */
export function monthOf(nowMs: number): { readonly startMs: number; readonly endMs: number } {
  const now = new Date(nowMs);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return { startMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
}

export function monthUntil(nowMs: number): TimeWindow {
  return { fromMs: monthOf(nowMs).startMs, toMs: nowMs, nowMs };
}

export function toStored({ fromMs, toMs }: TimeWindow): StoredWindow {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
}

/** In milliseconds since 1970; `endMs` is null while it lasts. */
export interface Stretch {
  readonly startMs: number;
  readonly endMs: number | null;
}

/**
 * Calls `add` with each day that a stretch of time touches within the window, and for how long. A stretch that ends before it begins,
 * because the clock was set back, counts for nothing.
 */
export function splitByDay(
  stretch: Stretch,
  { fromMs, toMs, nowMs }: TimeWindow,
  add: (dayMs: number, milliseconds: number) => void,
): void {
  const endMs = Math.min(stretch.endMs ?? nowMs, toMs);
  let atMs = Math.max(stretch.startMs, fromMs);
  while (atMs < endMs) {
    const dayMs = atMs - modulo(atMs, DAY_MS);
    const untilMs = Math.min(endMs, dayMs + DAY_MS);
    add(dayMs, untilMs - atMs);
    atMs = untilMs;
  }
}

/** Length of a stored time: always `2026-01-31T00:00:00.000Z`. */
export const STORED_LENGTH = 24;

/** Milliseconds since 1970 of the stored time at this offset of a text. `Date.parse` is too slow for the many times of a bill. */
export function parseStored(text: string, at = 0): number {
  const two = (from: number) =>
    (text.charCodeAt(at + from) - ZERO) * 10 + text.charCodeAt(at + from + 1) - ZERO;
  const milliseconds = (text.charCodeAt(at + 20) - ZERO) * 100 + two(21);
  return Date.UTC(two(0) * 100 + two(2), two(5) - 1, two(8), two(11), two(14), two(17), milliseconds);
}

const ZERO = '0'.charCodeAt(0);

/** Keeps days before 1970 beginning at midnight too. */
function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
