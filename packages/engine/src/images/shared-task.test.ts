import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ImageProgress } from './images.ts';
import { SharedTasks } from './shared-task.ts';

const step = (message: string): ImageProgress => ({ step: 'building', message });

test('a late caller of a shared task gets the latest progress, and all callers get the same result', async () => {
  const tasks = new SharedTasks<number>();
  const { promise, resolve } = Promise.withResolvers<number>();
  let starts = 0;
  let emit: (progress: ImageProgress) => void = () => {};
  const start = (onProgress: (progress: ImageProgress) => void) => {
    starts += 1;
    emit = onProgress;
    return promise;
  };
  const heard: ImageProgress[][] = [[], []];
  const caller = (place: number) => ({
    onProgress: (event: ImageProgress) => heard[place]?.push(event),
    signal: new AbortController().signal,
  });
  const first = tasks.run('key', start, caller(0));
  await Promise.resolve();
  await Promise.resolve();
  emit(step('one'));
  emit(step('two'));
  const second = tasks.run('key', start, caller(1));
  emit(step('three'));
  resolve(7);
  assert.deepEqual(await Promise.all([first, second]), [7, 7]);
  assert.equal(starts, 1);
  assert.deepEqual(heard, [
    [step('one'), step('two'), step('three')],
    [step('two'), step('three')],
  ]);
});

test('work stops with its last caller, who waits for its end; the next caller starts anew', async () => {
  const tasks = new SharedTasks<string>();
  const log: string[] = [];
  const start = async (_emit: unknown, signal: AbortSignal) => {
    log.push('started');
    if (log.length > 1) return 'again';
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    log.push('tidied up');
    throw signal.reason;
  };
  const aborts = [new AbortController(), new AbortController()];
  const calls = aborts.map(({ signal }) => tasks.run('key', start, { onProgress: () => {}, signal }));
  const results = Promise.allSettled(calls);
  aborts[0]?.abort(new Error('first left'));
  await assert.rejects(calls[0] ?? Promise.resolve(), /first left/);
  assert.deepEqual(log, ['started']);
  aborts[1]?.abort(new Error('last left'));
  await assert.rejects(calls[1] ?? Promise.resolve(), /last left/);
  assert.deepEqual(log, ['started', 'tidied up']);
  await results;
  assert.equal(
    await tasks.run('key', start, { onProgress: () => {}, signal: new AbortController().signal }),
    'again',
  );
});
