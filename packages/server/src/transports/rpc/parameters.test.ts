import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestServer, type TestServer } from '../../testing/test-server.ts';

const LONG = 'a'.repeat(64);
const NAME_RULES = [
  ['', 'cannot be empty'],
  [LONG, 'cannot exceed 63 characters'],
  ['ü'.repeat(64), 'cannot exceed 63 characters'],
  ['a b', 'can only contain alphanumeric characters, hyphens, or underscores'],
  ['a/b', 'can only contain alphanumeric characters, hyphens, or underscores'],
  ['../etc', 'can only contain alphanumeric characters, hyphens, or underscores'],
  ['naïve', 'can only contain alphanumeric characters, hyphens, or underscores'],
  ['a\n', 'can only contain alphanumeric characters, hyphens, or underscores'],
  ['-a', 'must start with an alphanumeric character'],
  ['_a', 'must start with an alphanumeric character'],
] as const;
const METHODS = {
  'sandbox.start': { config: { image: 'x' } },
  'sandbox.stop': {},
  'sandbox.metrics.get': {},
  'sandbox.repl.run': { language: 'python', code: '1' },
  'sandbox.command.run': { command: 'true' },
} as const;

test('a bad name is refused by every method, with the words of the rule it breaks', async (t) => {
  const server = await startTestServer(t);
  for (const [method, params] of Object.entries(METHODS)) {
    for (const [name, rule] of NAME_RULES) {
      await refused(
        server,
        method,
        { ...params, sandbox: name, namespace: 'n' },
        'sandbox',
        `Sandbox name ${rule}`,
      );
      await refused(
        server,
        method,
        { ...params, sandbox: 'a', namespace: name },
        'namespace',
        `Namespace ${rule}`,
      );
    }
  }
});

test('the longest and the shortest name are taken', async (t) => {
  const server = await startTestServer(t);
  for (const name of ['a', '0', 'A-b_9', 'x'.repeat(63)]) {
    const { result } = await server.call('sandbox.start', {
      sandbox: name,
      namespace: name,
      config: { image: 'x' },
    });
    assert.equal(result, `Sandbox ${name} started successfully`);
  }
});

test('a request without a namespace, or with null, means the namespace default', async (t) => {
  const server = await startTestServer(t);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x' } });
  await server.call('sandbox.start', { sandbox: 'b', namespace: null, config: { image: 'x' } });
  const { result } = await server.call('sandbox.metrics.get', { namespace: 'default' });
  assert.deepEqual(names(result), ['a', 'b']);
});

test('* is a namespace for metrics only', async (t) => {
  const server = await startTestServer(t);
  const rule = 'Namespace can only contain alphanumeric characters, hyphens, or underscores';
  for (const [method, params] of Object.entries(METHODS)) {
    if (method === 'sandbox.metrics.get') continue;
    await refused(server, method, { ...params, sandbox: 'a', namespace: '*' }, 'namespace', rule);
  }
  assert.deepEqual((await server.call('sandbox.metrics.get', { namespace: '*' })).result, { sandboxes: [] });
});

test('a missing, mistyped or unknown parameter is -32602 and named', async (t) => {
  const server = await startTestServer(t);
  const start = { sandbox: 'a', config: { image: 'x' } };
  const cases: readonly [string, object, field: string][] = [
    ['sandbox.start', {}, 'sandbox'],
    ['sandbox.start', { sandbox: 7 }, 'sandbox'],
    ['sandbox.start', { sandbox: 'a', namespace: 7 }, 'namespace'],
    ['sandbox.start', { ...start, colour: 'red' }, 'colour'],
    ['sandbox.start', { sandbox: 'a', config: 'x' }, 'config'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', memory: '512' } }, 'config.memory'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', memory: 1.5 } }, 'config.memory'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', memory: -1 } }, 'config.memory'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', cpus: 0 } }, 'config.cpus'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', envs: 'A=1' } }, 'config.envs'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', envs: [1] } }, 'config.envs[0]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', envs: ['A'] } }, 'config.envs[0]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', envs: ['A=1', '=2'] } }, 'config.envs[1]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', envs: ['A=1', 'A=2'] } }, 'config.envs[1]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', volumes: ['/a'] } }, 'config.volumes[0]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', volumes: ['/a:/b:x'] } }, 'config.volumes[0]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', ports: ['70000'] } }, 'config.ports[0]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', ports: ['a:b'] } }, 'config.ports[0]'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', color: 1 } }, 'config.color'],
    // Errors found in the resulting spec are reported in terms of the caller's parameters.
    ['sandbox.start', { sandbox: 'a', config: { image: '' } }, 'config.image'],
    ['sandbox.start', { sandbox: 'a', config: { image: 'x', workdir: 'here' } }, 'config.workdir'],
    [
      'sandbox.start',
      { sandbox: 'a', config: { image: 'x', volumes: ['/a:/b', '/c:/b'] } },
      'config.volumes[1]',
    ],
    ['sandbox.repl.run', { sandbox: 'a', code: '1' }, 'language'],
    ['sandbox.repl.run', { sandbox: 'a', language: 'python' }, 'code'],
    ['sandbox.repl.run', { sandbox: 'a', language: 'cobol', code: '1' }, 'language'],
    ['sandbox.repl.run', { sandbox: 'a', language: 'python', code: '1', timeout: 0 }, 'timeout'],
    ['sandbox.command.run', { sandbox: 'a' }, 'command'],
    ['sandbox.command.run', { sandbox: 'a', command: '' }, 'command'],
    ['sandbox.command.run', { sandbox: 'a', command: 'x', args: 'y' }, 'args'],
    ['sandbox.command.run', { sandbox: 'a', command: 'x', args: ['a\0b'] }, 'args[0]'],
    ['sandbox.command.run', { sandbox: 'a', command: 'x', envs: ['A=1', 'B=', 'A=1'] }, 'envs[2]'],
    ['sandbox.command.run', { sandbox: 'a', command: 'x', timeout: -1 }, 'timeout'],
    ['sandbox.metrics.get', { sandbox: 5 }, 'sandbox'],
  ];
  for (const [method, params, field] of cases) await refused(server, method, params, field);
});

test('null means the default wherever a parameter may be left out', async (t) => {
  const server = await startTestServer(t);
  const config = Object.fromEntries(
    ['memory', 'cpus', 'envs', 'workdir', 'volumes', 'ports', 'shell', 'scripts'].map((name) => [name, null]),
  );
  const started = await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x', ...config } });
  assert.equal(started.result, 'Sandbox a started successfully');
  const again = await server.call('sandbox.start', { sandbox: 'a', config: null });
  assert.equal(again.result, 'Sandbox a started successfully');
  const run = await server.call('sandbox.command.run', {
    sandbox: 'a',
    command: 'true',
    args: null,
    timeout: null,
  });
  assert.equal((run.result as unknown as { exit_code: number }).exit_code, 0);
});

async function refused(server: TestServer, method: string, params: object, field: string, message?: string) {
  const { error } = await server.call(method, params);
  const label = `${method} ${JSON.stringify(params)}`;
  assert.equal(error?.code, -32_602, label);
  const data = error.data as { field: string; reason: string };
  assert.equal(data.field, field, label);
  assert.notEqual(data.reason, '', label);
  if (message !== undefined) assert.equal(error.message, message, label);
}

function names(result: unknown): readonly string[] {
  return (result as { sandboxes: { name: string }[] }).sandboxes.map(({ name }) => name);
}
