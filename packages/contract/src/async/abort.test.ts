import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abortable, onAbort } from './abort.ts';

test('an abortable wait rejects with the reason of the abort', async () => {
  const stop = new AbortController();
  const waiting = abortable(new Promise(() => undefined), stop.signal);
  stop.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(abortable(new Promise(() => undefined), stop.signal), /enough/);
  assert.equal(await abortable(Promise.resolve(1), new AbortController().signal), 1);
});

test('a listener that was taken back is not called', () => {
  const stop = new AbortController();
  let calls = 0;
  onAbort(stop.signal, () => calls++);
  onAbort(stop.signal, () => calls++)();
  stop.abort();
  assert.equal(calls, 1);
});
