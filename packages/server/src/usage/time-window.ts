import type { StoredWindow } from '../store/usage.ts';

export const DAY_MS = 24 * 60 * 60 * 1000;
export const HOUR_SECONDS = 60 * 60;

/** Milliseconds since 1970; `[fromMs, toMs)`. What still lasts, lasts until `nowMs`. */
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

/**
 * Calls `add` with each day that a stretch of time touches within the window, and for how long. A stretch that ends
 * before it begins, after the clock was set back, counts for nothing.
 */
export function splitByDay(
  stretch: { readonly started_at: string; readonly ended_at: string | null },
  { fromMs, toMs, nowMs }: TimeWindow,
  add: (dayMs: number, milliseconds: number) => void,
): void {
  const endMs = Math.min(stretch.ended_at === null ? nowMs : parseStored(stretch.ended_at), toMs);
  let atMs = Math.max(parseStored(stretch.started_at), fromMs);
  while (atMs < endMs) {
    const dayMs = atMs - modulo(atMs, DAY_MS);
    const untilMs = Math.min(endMs, dayMs + DAY_MS);
    add(dayMs, untilMs - atMs);
    atMs = untilMs;
  }
}

/**
 * Milliseconds since 1970 of a time as the store has them: always `2026-01-31T00:00:00.000Z`. Ten times as fast as
 * `Date.parse`, and a bill is made of many.
 */
function parseStored(text: string): number {
  const two = (at: number) => (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO;
  const milliseconds = (text.charCodeAt(20) - ZERO) * 100 + two(21);
  return midnightOf(text.slice(0, 10)) + ((two(11) * 60 + two(14)) * 60 + two(17)) * 1000 + milliseconds;
}

const ZERO = '0'.charCodeAt(0);
let latestDay = { text: '', midnightMs: 0 };

/** Times that follow each other are mostly of one day. */
function midnightOf(text: string): number {
  if (text !== latestDay.text) latestDay = { text, midnightMs: Date.parse(`${text}T00:00:00Z`) };
  return latestDay.midnightMs;
}

/** Days before 1970 begin at midnight too. */
function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
