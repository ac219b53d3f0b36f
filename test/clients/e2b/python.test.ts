import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { join } from 'node:path';
import { E2bClients } from './start-e2b.ts';

let clients: E2bClients;
// What the program saw, looked into by each test.
let seen: Readonly<Record<string, unknown>>;
before(async () => {
  clients = await E2bClients.start('base', 'code');
  const { code, stdout, stderr } = await clients.run('/usr/bin/python3', [
    join(import.meta.dirname, 'acceptance.py'),
  ]);
  assert.equal(code, 0, stderr);
  seen = JSON.parse(stdout) as typeof seen;
});
after(() => clients.destroy());

test('commands of Python: output, input, exit, timeout, folder and user', () => {
  assert.deepEqual(seen['commands'], {
    stdout: '1\nuser\n/tmp\n',
    typed: 'typed\n',
    listed: true,
    killed: [true, false],
    exit: 'CommandExitException',
    timeout: 'TimeoutException',
    cwd: 'InvalidArgumentException',
    user: 'AuthenticationException',
  });
});

test('files of Python: every form, moves, lists and a watcher that is asked', () => {
  assert.deepEqual(seen['files'], {
    written: '/tmp/d/ü.txt',
    both: ['/home/user/one', '/home/user/x/two'],
    read: 'hello',
    bytes: 5,
    stream: 'hello',
    made: [true, false],
    moved: ['/tmp/e/v.txt', 'user', '-rw-r--r--'],
    listed: ['/tmp/e/v.txt'],
    exists: [true, false],
    missing: 'FileNotFoundException',
    unwatched: 'FileNotFoundException',
    first_event: ['create', 'new'],
  });
});

test('the control API of Python: life, lists, snapshots, templates and errors', () => {
  assert.deepEqual(seen['control'], {
    state: 'running',
    metadata: { 'a b': 'b&c' },
    listed: true,
    snapshot: [true, false],
    template: [true, false],
    pause: 'SandboxException',
    key: 'AuthenticationException',
    unknown: 'SandboxException',
  });
});

test('volumes of Python', () => {
  assert.deepEqual(seen['volume'], {
    read: 'kept',
    listed: ['/a/b.txt'],
    missing: 'VolumePathNotFoundException',
    destroyed: [true, false],
  });
});

test('code of Python: values, output, contexts, tables, charts, and what is left after a timeout', () => {
  assert.deepEqual(seen['code'], {
    text: 'value',
    stdout: ['said\n'],
    error: ['ZeroDivisionError', 'division by zero'],
    lines: ['streamed\n'],
    variables: ['here', null],
    inside: '/tmp',
    contexts: ['python', 'javascript', 'python'],
    gone: 'NotFoundException',
    frame: [{ n: [1, 2] }, true, true],
    figure: true,
    chart: [
      'line',
      'Two',
      [
        [0, 1],
        [1, 4],
      ],
    ],
    counts: [1, 6],
    slow: 'TimeoutException',
    after: '4',
    json: 'value',
  });
});

test('the asynchronous clients: commands side by side, a terminal, a watch and a sandbox that is gone', () => {
  assert.deepEqual(seen['async'], {
    outputs: Array.from({ length: 8 }, (_, n) => `${n}\n`),
    terminal: [true, 0],
    alive: [true, true, false],
    text: '2',
    gone: 'SandboxNotRunningException',
  });
});
