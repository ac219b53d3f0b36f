import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dayToTime } from './day-to-time.ts';

test('a day begins and ends where its viewer is; what is no day is left out', () => {
  const start = new Date(2026, 1, 3, 0, 0, 0, 0).toISOString();
  const end = new Date(2026, 1, 3, 23, 59, 59, 999).toISOString();
  assert.equal(dayToTime('2026-02-03', 'start'), start);
  assert.equal(dayToTime('2026-02-03', 'end'), end);
  for (const each of [null, '', '2026-13-01', 'today', '2026', '2026-02', '2026-02-03T00:00'])
    assert.equal(dayToTime(each, 'start'), undefined, String(each));
});
