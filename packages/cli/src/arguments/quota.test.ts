import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectQuota } from './quota.ts';

test('a limit is a number, unlimited, or a word that the server knows', () => {
  const given = ['max_sandboxes=10', 'max_vcpus_per_sandbox=unlimited', 'plan=free', 'is_suspended=true'];
  assert.deepEqual(
    given.reduce((earlier, text) => collectQuota(text, earlier), {}),
    { max_sandboxes: 10, max_vcpus_per_sandbox: null, plan: 'free', is_suspended: true },
  );
  assert.deepEqual(collectQuota('a=2', collectQuota('a=1')), { a: 2 });
});

test('a limit without a name or a value is refused', () => {
  for (const text of ['a', '=1', 'a=', 'A=1', ''])
    assert.throws(() => collectQuota(text), /LIMIT=VALUE/, text);
});
