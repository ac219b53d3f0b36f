import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { HostCallError } from './host-calls.ts';
import { retryLostHelper } from './retry-lost-helper.ts';

const LOST = new HostCallError('mountOverlay', 'ECHILD', 'svc-host ended during the call');
const WRAPPED = new PlatformError('start_failed', 'its helper ended', { cause: LOST });

/** Fails as often as there are errors, then succeeds. Returns how often it was tried. */
async function attempt(errors: readonly Error[], signal = AbortSignal.timeout(60_000)): Promise<number> {
  let tries = 0;
  const work = async () => {
    const error = errors[tries];
    tries += 1;
    if (error !== undefined) throw error;
    return await Promise.resolve(tries);
  };
  return await retryLostHelper(work, signal, () => undefined);
}

test('work is retried when its helper was lost, also as a nested cause, but not for ever', async () => {
  assert.equal(await attempt([LOST]), 2);
  assert.equal(await attempt([WRAPPED, LOST]), 3);
  await assert.rejects(attempt([LOST, WRAPPED, LOST]), LOST);
});

test('other failures, failed undos and expired deadlines are not retried', async () => {
  const other = new HostCallError('mountOverlay', 'ENOSPC', 'no space');
  await assert.rejects(attempt([other]), other);
  const torn = new SuppressedError(new Error('undo'), LOST);
  await assert.rejects(attempt([torn]), torn);
  await assert.rejects(attempt([LOST], AbortSignal.abort()), LOST);
});
