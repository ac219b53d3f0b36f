import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAge, formatBytes, formatDuration, formatPercent } from './amounts.ts';

test('bytes are shown in the unit that keeps them short', () => {
  assert.deepEqual([0, 1023, 1536, 150 * 1024 * 1024, 2 ** 40].map(formatBytes), [
    '0 B',
    '1023 B',
    '1.5 KiB',
    '150 MiB',
    '1.0 TiB',
  ]);
});

test('an age is shown in its largest unit', () => {
  const now = Date.parse('2030-01-10T00:00:00Z');
  const ages = [
    '2030-01-09T23:59:30Z',
    '2030-01-09T23:10:00Z',
    '2030-01-09T01:00:00Z',
    '2030-01-01T00:00:00Z',
    null,
  ];
  assert.deepEqual(
    ages.map((since) => formatAge(since, now)),
    ['30s', '50m', '23h', '9d', '-'],
  );
});

test('a time limit is shown exactly, as an option takes it', () => {
  const limits = [0, 0.5, 45, 90, 600, 5400, 7200, 86_400, 90_000, 720 * 60];
  assert.deepEqual(limits.map(formatDuration), [
    '0s',
    '0.5s',
    '45s',
    '90s',
    '10m',
    '90m',
    '2h',
    '1d',
    '25h',
    '12h',
  ]);
});

test('a share of a CPU has one digit behind the point', () => {
  assert.deepEqual([0, 12.345, 400].map(formatPercent), ['0.0%', '12.3%', '400.0%']);
});
