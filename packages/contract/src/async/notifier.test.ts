import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { Notifier } from './notifier.ts';

test('a notification wakes all current waiters, and later ones wait for the next', async () => {
  const notifier = new Notifier();
  const { signal } = new AbortController();
  const woken: string[] = [];
  const wait = async (name: string) => {
    await notifier.wait(signal);
    woken.push(name);
  };
  const first = [wait('a'), wait('b')];
  notifier.notify();
  const later = wait('c');
  await Promise.all(first);
  assert.deepEqual(woken, ['a', 'b']);
  notifier.notify();
  await later;
  assert.deepEqual(woken, ['a', 'b', 'c']);
});

test('an abort before or during a wait ends it, and leaves no listener behind', async () => {
  const notifier = new Notifier();
  const abort = new AbortController();
  const waiting = notifier.wait(abort.signal);
  abort.abort();
  await waiting;
  await notifier.wait(abort.signal);
  assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
});
