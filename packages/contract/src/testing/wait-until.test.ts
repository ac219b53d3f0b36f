import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from './wait-until.ts';

test('waiting ends when the answer is yes', async () => {
  let asked = 0;
  await waitUntil(async () => ++asked === 3);
  assert.equal(asked, 3);
});

test('a condition that never holds is an error that names it', async () => {
  const never = waitUntil(() => false, { what: 'the cow jumps', timeoutMs: 1 });
  await assert.rejects(never, /after 1 ms still waiting until the cow jumps/);
});

test('a long wait polls less often', async () => {
  let asked = 0;
  const never = waitUntil(() => ++asked === 0, { timeoutMs: 500 });
  await assert.rejects(never, /still waiting/);
  assert.ok(asked < 35, `asked ${asked} times in half a second`);
});
