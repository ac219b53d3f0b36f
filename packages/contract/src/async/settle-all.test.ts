import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settleAll } from './settle-all.ts';

test('all values are returned, and a failure only after all promises have settled', async () => {
  const [one, two]: [number, string] = await settleAll([Promise.resolve(1), 'two']);
  assert.deepEqual([one, two], [1, 'two']);
  let isOver = false;
  const slow = new Promise<void>((resolve) => setImmediate(resolve)).then(() => (isOver = true));
  await assert.rejects(
    settleAll([slow, Promise.reject(new Error('first')), Promise.reject(new Error('second'))]),
    /first/,
  );
  assert.ok(isOver);
});
