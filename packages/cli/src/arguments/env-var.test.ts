import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectEnvVar } from './env-var.ts';

test('a variable keeps everything after its first equals sign', () => {
  assert.deepEqual(collectEnvVar('A=b=c'), [{ key: 'A', value: 'b=c' }]);
  assert.deepEqual(collectEnvVar('EMPTY='), [{ key: 'EMPTY', value: '' }]);
});

test('a variable given twice has its last value', () => {
  const variables = ['A=1', 'B=2', 'A=3'].reduce<ReturnType<typeof collectEnvVar>>(
    (earlier, text) => collectEnvVar(text, earlier),
    [],
  );
  assert.deepEqual(variables, [
    { key: 'B', value: '2' },
    { key: 'A', value: '3' },
  ]);
});

test('a variable without a name or a value is refused', () => {
  for (const text of ['A', '=x', '']) assert.throws(() => collectEnvVar(text), /KEY=VALUE/, text);
});
