import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_ATTEMPTS } from '../store/webhook-deliveries.ts';
import { pauseAfter } from './end-delivery.ts';
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
