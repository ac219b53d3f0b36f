import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pause, remaining } from './node-pause.ts';

test('pauses end together: those of one length at the same moments, those of a multiple of it at some of them', () => {
  const ends = [12_000, 12_100, 12_400].map((now) => now + remaining(1000, now));
  assert.deepEqual(ends, [13_000, 13_000, 13_000]);
  assert.equal(12_100 + remaining(500, 12_100), 12_500);
  assert.equal(12_400 + remaining(500, 12_400), 13_000);
});

test('a pause is at least half as long as asked for, and at most half longer', () => {
  for (let now = 0; now < 3000; now += 7) {
    const rest = remaining(1000, now);
    assert.ok(rest >= 500 && rest <= 1500, `${rest} at ${now}`);
  }
});

test('a pause ends with its signal, which is no failure', async () => {
  const over = new AbortController();
  const paused = pause(60_000, over.signal);
  over.abort();
  await paused;
  await pause(60_000, over.signal);
});
