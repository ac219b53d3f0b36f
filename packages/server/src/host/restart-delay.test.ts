import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestartDelay } from './restart-delay.ts';

test('the first restart is at once, later ones wait longer, and a run that lasted makes up for all', () => {
  const delay = new RestartDelay();
  assert.deepEqual(
    Array.from({ length: 9 }, () => delay.after(50)),
    [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000],
  );
  assert.deepEqual([delay.after(60_000), delay.after(50)], [0, 100]);
});
