import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namesShown, roundUp } from './bar-scale.ts';
import {
  formatBytes,
  formatCents,
  formatMib,
  formatNumber,
  formatQuantity,
  formatScale,
} from './format-amount.ts';
import { ago, formatDay, formatSpan } from './format-time.ts';

test('amounts are written as people read them', () => {
  assert.equal(formatBytes(0), '0 B');
  assert.equal(formatBytes(1536), '1.5 KiB');
  assert.equal(formatBytes(10 * 2 ** 30), '10 GiB');
  assert.equal(formatMib(512), '512 MiB');
  assert.equal(formatCents(1230), '$12.30');
  assert.equal(formatNumber(1234.567), '1,234.57');
  assert.equal(formatQuantity(0, 'GiB-month'), '0 GiB-months');
  assert.equal(formatQuantity(1, 'vCPU-hour'), '1 vCPU-hour');
});

test('times are relative to now, and durations have their two largest units', () => {
  const now = Date.parse('2030-01-01T00:00:00Z');
  assert.equal(ago('2029-12-31T23:59:50Z', now), 'just now');
  assert.equal(ago('2029-12-31T23:57:00Z', now), '3 minutes ago');
  assert.equal(ago('2030-01-03T00:00:00Z', now), 'in 2 days');
  assert.equal(ago('2029-12-31T23:59:10Z', now), '1 minute ago');
  assert.equal(formatSpan(90_061_000), '1d 1h');
  assert.equal(formatSpan(200_000), '3m 20s');
  assert.equal(formatSpan(-5), '0s');
  assert.equal(formatDay('2030-01-05'), 'Jan 5');
});

test('a scale ends with a round amount, and names what there is room for', () => {
  assert.deepEqual([0, 0.034, 1, 3, 51, 1000].map(roundUp), [1, 0.05, 1, 5, 100, 1000]);
  assert.equal(formatScale(roundUp(0.034) / 2), '0.025');
  assert.deepEqual(namesShown(['a', 'b', 'c', 'd', 'e']), ['a', 'c', 'e']);
  assert.deepEqual(namesShown(['a', 'b']), ['a', 'b']);
  assert.deepEqual(namesShown([]), []);
});
