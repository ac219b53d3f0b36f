import assert from 'node:assert/strict';
import { EventEmitter, getEventListeners } from 'node:events';
import { test } from 'node:test';
import { NextChange } from './next-change.ts';

const LONG_MS = 600_000;

test('a change before the wait counts, and a change of another sandbox does not', async () => {
  const changes = new EventEmitter();
  using change = new NextChange(changes, 'one');
  const { signal } = new AbortController();
  changes.emit('one');
  await change.within(LONG_MS, signal);
  assert.deepEqual(getEventListeners(signal, 'abort'), []);

  using next = new NextChange(changes, 'one');
  let isReported = false;
  const reported = next.within(LONG_MS, signal).then(() => (isReported = true));
  changes.emit('two');
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isReported, false);
  changes.emit('one');
  await reported;
});

test('the wait is over with its time, and with its caller', async () => {
  const changes = new EventEmitter();
  {
    using change = new NextChange(changes, 'one');
    await change.within(1, new AbortController().signal);
    assert.equal(changes.listenerCount('one'), 1);
  }
  assert.equal(changes.listenerCount('one'), 0, 'who gave up is not listening any more');
  using change = new NextChange(changes, 'one');
  const caller = new AbortController();
  const waiting = change.within(LONG_MS, caller.signal);
  caller.abort();
  await waiting;
  using late = new NextChange(changes, 'one');
  await late.within(LONG_MS, caller.signal);
});
