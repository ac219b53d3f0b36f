import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_ATTEMPTS } from '../store/webhook-deliveries.ts';
import { pauseAfter } from './end-delivery.ts';
import { restOf } from './send-delivery.ts';
import { DEFAULT_WEBHOOK_SETTINGS } from './webhook-settings.ts';

test('pauses grow from seconds to a day, a fifth more or less, and then there is none', () => {
  const means = [5, 30, 120, 600, 3600, 21_600, 86_400].map((seconds) => seconds * 1000);
  for (const [failures, mean] of means.entries()) {
    const pauses = Array.from({ length: 200 }, () =>
      pauseAfter(MAX_ATTEMPTS - 1 - failures, DEFAULT_WEBHOOK_SETTINGS),
    );
    for (const pause of pauses) assert.ok(pause !== null && pause >= 0.8 * mean && pause <= 1.2 * mean);
    assert.ok(new Set(pauses).size > 1, 'not all at once');
  }
  assert.equal(pauseAfter(0, DEFAULT_WEBHOOK_SETTINGS), null);
});

test('Retry-After is read as seconds or as a date, and bounded by a day', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  const cases: readonly (readonly [string | undefined, number])[] = [
    [undefined, 0],
    ['', 0],
    ['soon', 0],
    ['-5', 0],
    ['1e9', 0],
    ['120', 120_000],
    [' 7 ', 7000],
    ['999999999', 86_400_000],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['Fri, 01 Jan 2100 00:00:00 GMT', 86_400_000],
  ];
  for (const [header, wanted] of cases) assert.equal(restOf(header, now), wanted, header);
});
