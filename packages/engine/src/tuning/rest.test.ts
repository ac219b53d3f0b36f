import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { Rest } from './rest.ts';

function makeRest(isFound = false) {
  const calls: string[] = [];
  const failures: Error[] = [];
  const call = async (what: string) => {
    calls.push(what);
    const failure = failures.pop();
    if (failure !== undefined) await Promise.reject(failure);
  };
  const runtime = { rest: () => call('rest'), wake: () => call('wake') };
  const logger = pino({ level: 'silent' });
  return { calls, failures, rest: new Rest({ runtime, handle: 'one', logger, isFound }) };
}

test('repeated calls reach the runtime once, and one that was found is woken in any case', () => {
  const { calls, rest } = makeRest();
  rest.wake();
  rest.rest();
  rest.rest();
  rest.wake();
  rest.wake();
  assert.deepEqual(calls, ['rest', 'wake']);
  const found = makeRest(true);
  found.rest.wake();
  assert.deepEqual(found.calls, ['wake']);
});

test('an unused sandbox rests after a short delay', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { calls, rest } = makeRest();
    for (const keep of [() => rest.wake(), () => rest.stay()]) {
      rest.restSoon();
      mock.timers.tick(249);
      keep();
      mock.timers.tick(10_000);
      assert.deepEqual(calls, []);
    }
    rest.restSoon();
    mock.timers.tick(200);
    // Not put off by being said again.
    rest.restSoon();
    mock.timers.tick(50);
    assert.deepEqual(calls, ['rest']);
    rest.wake();
    rest.restLater();
    rest.stay();
    mock.timers.tick(999);
    assert.deepEqual(calls, ['rest', 'wake']);
    mock.timers.tick(1);
    assert.deepEqual(calls, ['rest', 'wake', 'rest'], 'what waits for a caller is no caller');
    rest.wake();
    rest.restLater();
    rest.wake();
    mock.timers.tick(10_000);
    assert.deepEqual(calls.slice(3), ['wake']);
  } finally {
    mock.timers.reset();
  }
});

test('a failed change is tried again at the next one', async () => {
  const { calls, failures, rest } = makeRest();
  rest.rest();
  failures.push(new Error('the helper is gone'));
  rest.wake();
  await turn();
  rest.wake();
  rest.wake();
  assert.deepEqual(calls, ['rest', 'wake', 'wake']);
});
