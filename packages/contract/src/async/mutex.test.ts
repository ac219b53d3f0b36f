import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedMutex, Mutex } from './mutex.ts';

test('a mutex runs one piece of work at a time, also after a failure', async () => {
  const mutex = new Mutex();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  const first = mutex.run(async () => {
    await gate.promise;
    seen.push('first');
    throw new Error('no');
  });
  const second = mutex.run(async () => void seen.push('second'));
  assert.ok(mutex.isBusy);
  gate.resolve();
  await assert.rejects(first, /no/);
  await second;
  assert.deepEqual(seen, ['first', 'second']);
  assert.ok(!mutex.isBusy);
});

test('work on different keys overlaps, work on one key does not', async () => {
  const mutex = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  const slow = mutex.run('a', async () => {
    await gate.promise;
    seen.push('a1');
  });
  const next = mutex.run('a', async () => void seen.push('a2'));
  await mutex.run('b', async () => void seen.push('b'));
  const idle = mutex.whenIdle().then(() => seen.push('idle'));
  gate.resolve();
  await Promise.all([slow, next, idle]);
  assert.deepEqual(seen, ['b', 'a1', 'a2', 'idle']);
});
