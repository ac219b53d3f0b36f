import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedTurns, Turns } from './turns.ts';

test('work happens one after the other, also after a failure', async () => {
  const turns = new Turns();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  const first = turns.take(async () => {
    await gate.promise;
    seen.push('first');
    throw new Error('no');
  });
  const second = turns.take(async () => void seen.push('second'));
  assert.ok(turns.isBusy);
  gate.resolve();
  await assert.rejects(first, /no/);
  await second;
  assert.deepEqual(seen, ['first', 'second']);
  assert.ok(!turns.isBusy);
});

test('work on different things overlaps, on one thing it does not', async () => {
  const turns = new KeyedTurns();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  const slow = turns.take('a', async () => {
    await gate.promise;
    seen.push('a1');
  });
  const next = turns.take('a', async () => void seen.push('a2'));
  await turns.take('b', async () => void seen.push('b'));
  const idle = turns.whenIdle().then(() => seen.push('idle'));
  gate.resolve();
  await Promise.all([slow, next, idle]);
  assert.deepEqual(seen, ['b', 'a1', 'a2', 'idle']);
});
