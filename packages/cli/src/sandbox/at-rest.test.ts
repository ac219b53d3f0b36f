import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sandbox } from '@svc/sdk';
import { stopUnlessAtRest } from './at-rest.ts';

/** `found`: the state at each look; the last one stays. The server refuses to stop a sandbox that does not run. */
function sandboxThatIs(...found: readonly [Sandbox['status'], ...Sandbox['status'][]]) {
  const looks = [...found];
  let stops = 0;
  return {
    get status() {
      return looks[0] ?? assert.fail('no state was expected');
    },
    get stops() {
      return stops;
    },
    refresh: async () => {
      if (looks.length > 1) looks.shift();
      await Promise.resolve();
    },
    stop: async () => {
      stops += 1;
      await Promise.reject(new Error('refused'));
    },
  };
}

test('a stop of a sandbox that has just ended succeeds', async () => {
  const ending = sandboxThatIs('running', 'failed');
  await stopUnlessAtRest(ending);
  assert.equal(ending.stops, 1);
  const ended = sandboxThatIs('stopped');
  await stopUnlessAtRest(ended);
  assert.equal(ended.stops, 0, 'it is not asked for');
});

test('a stop that is refused for another reason fails', async () => {
  await assert.rejects(stopUnlessAtRest(sandboxThatIs('running', 'running')), /refused/);
});
