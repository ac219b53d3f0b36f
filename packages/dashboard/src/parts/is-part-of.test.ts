import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPartOf } from './is-part-of.ts';

test('a problem belongs to the input for the field that it names, or for what holds that field', () => {
  for (const named of ['env', 'env.0.key', 'env[0].key']) assert.ok(isPartOf(named, 'env'), named);
  assert.ok(!isPartOf('environment', 'env'));
  assert.ok(!isPartOf('env', 'env.0'));
});
