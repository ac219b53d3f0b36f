import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAge, formatBytes } from './amounts.ts';

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
