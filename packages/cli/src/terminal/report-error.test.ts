import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '@svc/sdk';
import { reportFailure } from './report-error.ts';

test('a sandbox that may come back as it was is not started anew by what is said to type', (t) => {
  const said: string[] = [];
  t.mock.method(process.stderr, 'write', (text: string) => said.push(text) > 0);
  for (const status of ['temporarily_unavailable', 'recovery_decision_required', 'stopped']) {
    const error = new SvcError('sandbox_not_running', `Sandbox 'box' is ${status}`, { details: { status } });
    assert.equal(reportFailure(error, { isJson: false, command: 'exec' }), 125);
  }
  t.mock.restoreAll();
  const steps = said.join('').match(/(?<=try: ).*/g);
  assert.deepEqual(steps, [
    'the same in some seconds   # it goes on as it was when its host is back: svc ps',
    'svc recover box restart',
    'svc start box',
  ]);
});

test('names in what the system, a server or a sandbox says make no line of their own', (t) => {
  const said: string[] = [];
  t.mock.method(process.stderr, 'write', (text: string) => said.push(text) > 0);
  const path = '/a\nforged\u001B[2J/b';
  for (const code of ['ENOTDIR', 'EACCES'])
    reportFailure(Object.assign(new Error(`${code}: open '${path}'`), { code, path }), { isJson: false });
  reportFailure(new SvcError('not_found', `There is no '${path}'`), { isJson: false });
  t.mock.restoreAll();
  assert.equal(said.length, 3);
  for (const text of said) assert.match(text, /^error: .*\/a<U\+000A>forged<U\+001B>\[2J.*\n {2}try: .*\n$/);
});

test('an exceeded limit is reported in words and units', (t) => {
  const said: string[] = [];
  t.mock.method(process.stderr, 'write', (text: string) => said.push(text) > 0);
  for (const [limit, value, maximum] of [
    ['max_memory_mib_per_sandbox', 2048, 1024],
    ['max_sandboxes', 4, 3],
    ['max_tokens', 101, 100],
  ] as const) {
    const message = `It is too much; ask for less (${limit} is ${maximum}, this makes it ${value})`;
    const error = new SvcError('quota_exceeded', message, { details: { limit, value, maximum } });
    reportFailure(error, { isJson: false, command: 'create' });
    reportFailure(error, { isJson: true, command: 'create' });
  }
  t.mock.restoreAll();
  const sentences = said.map((text) => /\(.*\)/.exec(text)?.[0]);
  assert.deepEqual(sentences, [
    '(Memory of one sandbox: at most 1.0 GiB, this makes it 2.0 GiB)',
    '(max_memory_mib_per_sandbox is 1024, this makes it 2048)',
    '(Sandboxes: at most 3, this makes it 4)',
    '(max_sandboxes is 3, this makes it 4)',
    '(at most 100, this makes it 101)',
    '(max_tokens is 100, this makes it 101)',
  ]);
});
