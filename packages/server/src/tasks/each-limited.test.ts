import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { eachLimited } from './each-limited.ts';

test('every item is worked on once, and no more than the limit at a time', async () => {
  const seen: number[] = [];
  let [now, most] = [0, 0];
  await eachLimited(Array.from({ length: 20 }).keys(), 3, async (item) => {
    now += 1;
    most = Math.max(most, now);
    await nextTurn();
    seen.push(item);
    now -= 1;
  });
  assert.deepEqual(
    seen.toSorted((a, b) => a - b),
    [...Array.from({ length: 20 }).keys()],
  );
  assert.equal(most, 3);
});

test('after a failure nothing more is begun, and what was under way has ended', async () => {
  const ended: number[] = [];
  const work = eachLimited([1, 2, 3, 4, 5, 6], 2, async (item) => {
    if (item === 1) throw new Error('broken');
    await nextTurn();
    ended.push(item);
  });
  await assert.rejects(work, /broken/);
  assert.deepEqual(ended, [2]);
});
