import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { Bell } from './bell.ts';

test('everybody who waits is woken, once, and those who come later wait on', async () => {
  const bell = new Bell();
  const { signal } = new AbortController();
  const woken: string[] = [];
  const wait = async (name: string) => {
    await bell.next(signal);
    woken.push(name);
  };
  const first = [wait('a'), wait('b')];
  bell.ring();
  const later = wait('c');
  await Promise.all(first);
  assert.deepEqual(woken, ['a', 'b']);
  bell.ring();
  await later;
  assert.deepEqual(woken, ['a', 'b', 'c']);
});

test('an abort wakes too, before it waits and while it does, and nothing listens afterwards', async () => {
  const bell = new Bell();
  const abort = new AbortController();
  const waiting = bell.next(abort.signal);
  abort.abort();
  await waiting;
  await bell.next(abort.signal);
  assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
});
