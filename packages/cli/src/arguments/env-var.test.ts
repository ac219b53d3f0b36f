import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectEnvVar, toEnv } from './env-var.ts';

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

test('a name alone is the variable of here, and nothing when there is none', () => {
  const variables = [...collectEnvVar('HERE'), ...collectEnvVar('GONE'), ...collectEnvVar('A=b')];
  const readVariable = (name: string) => (name === 'HERE' ? 'value' : undefined);
  assert.deepEqual(toEnv(variables, readVariable), { HERE: 'value', A: 'b' });
});

test('a variable without a name is refused', () => {
  for (const text of ['=x', '']) assert.throws(() => collectEnvVar(text), /KEY=VALUE/, text);
});
