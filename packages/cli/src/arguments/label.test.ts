import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectLabel } from './label.ts';

test('a label is a key with a value, or a key alone', () => {
  assert.deepEqual(collectLabel('team=ml'), { team: 'ml' });
  assert.deepEqual(collectLabel('marker', { team: 'ml' }), { team: 'ml', marker: '' });
  assert.deepEqual(collectLabel('a=b=c', { a: 'old' }), { a: 'b=c' });
});

test('a label without a key is refused', () => {
  for (const text of ['', '=value']) assert.throws(() => collectLabel(text), /KEY=VALUE/);
});
