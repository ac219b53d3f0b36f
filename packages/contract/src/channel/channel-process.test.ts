import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { test } from 'node:test';
import { ExecFailed } from './channel-error.ts';
import { ScriptedAgent } from '../testing/scripted-agent.ts';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const bytes = (value: string): Uint8Array => new TextEncoder().encode(value);

/** Answers every request with a process that the test then plays. */
function withProcess(): ReturnType<typeof ScriptedAgent.connect> {
  return ScriptedAgent.connect((message, agent) => {
    if (message.type === 'core.exec.request') agent.send(message.id, 'core.exec.started', { pid: 42 });
  });
}

test('a process has a pid, output on both streams and an exit', async () => {
  const { agent, client } = await withProcess();
  const process = await client.exec({ cmd: 'echo', args: ['a'], env: { A: 'b' }, cwd: '/tmp', tty: false });
  assert.equal(process.pid, 42);
  assert.deepEqual(agent.received[0]?.payload, {
    cmd: 'echo',
    args: ['a'],
    env: ['A=b'],
    cwd: '/tmp',
    user: null,
    tty: false,
    rows: 24,
    cols: 80,
    rlimits: [],
  });
  agent.send(1, 'core.exec.stdout', { data: bytes('out') });
  agent.send(1, 'core.exec.stderr', { data: bytes('err') });
  agent.send(1, 'core.exec.exited', { code: 3 });
  assert.deepEqual(await process.exited, { code: 3, signal: null, reason: 'exit' });
  assert.equal(text((await Array.fromAsync(process.stdout))[0] ?? bytes('')), 'out');
  assert.equal(text((await Array.fromAsync(process.stderr))[0] ?? bytes('')), 'err');
});

test('a run without input says so with its request, in one write; one with input says it behind the input', async () => {
  for (const [input, types] of [
    [undefined, ['core.exec.request', 'core.exec.stdin']],
    [bytes('in'), ['core.exec.request', 'core.exec.stdin', 'core.exec.stdin']],
  ] as const) {
    const { agent, client } = await ScriptedAgent.connect((message, peer) => {
      if (message.type === 'core.exec.request') peer.send(message.id, 'core.exec.started', { pid: 42 });
      const isEnd =
        message.type === 'core.exec.stdin' && (message.payload['data'] as Uint8Array).length === 0;
      if (isEnd) peer.send(message.id, 'core.exec.exited', { code: 0 });
    });
    const { code } = await client.run({ cmd: 'cat' }, input === undefined ? {} : { input });
    assert.equal(code, 0);
    assert.deepEqual(
      agent.received.map(({ type }) => type),
      types,
    );
    assert.equal(agent.writes, input === undefined ? 1 : 3);
  }
});

test('an exit says which signal, and whether memory ran out', async () => {
  const cases = [
    [
      { code: -1, signal: 9, reason: 'oom' },
      { code: -1, signal: 9, reason: 'oom' },
    ],
    [{ code: -1 }, { code: -1, signal: null, reason: 'signal' }],
    [
      { code: 0, signal: null, reason: 'made up' },
      { code: 0, signal: null, reason: 'exit' },
    ],
  ] as const;
  for (const [payload, expected] of cases) {
    const { agent, client } = await withProcess();
    const process = await client.exec({ cmd: 'x' });
    agent.send(1, 'core.exec.exited', payload);
    assert.deepEqual(await process.exited, expected);
  }
});

test('a process that cannot be started fails with a kind', async () => {
  const { client } = await ScriptedAgent.connect((message, agent) =>
    agent.send(message.id, 'core.exec.failed', {
      kind: 'not_found',
      message: 'nope: not found',
      errno_name: 'ENOENT',
    }),
  );
  await assert.rejects(client.exec({ cmd: 'nope' }), (error) => {
    assert.ok(error instanceof ExecFailed);
    assert.equal(error.kind, 'not_found');
    assert.equal(error.errnoName, 'ENOENT');
    return true;
  });
});

test('a kind of failure that we do not know is "other"', async () => {
  const { client } = await ScriptedAgent.connect((message, agent) =>
    agent.send(message.id, 'core.exec.failed', { kind: 'constructor', message: 'x'.repeat(100_000) }),
  );
  await assert.rejects(client.exec({ cmd: 'x' }), (error) => {
    assert.ok(error instanceof ExecFailed);
    assert.equal(error.kind, 'other');
    assert.ok(error.message.length <= 4096);
    return true;
  });
});

test('input, signals and sizes reach the process; large input is cut', async () => {
  const { agent, client } = await withProcess();
  const process = await client.exec({ cmd: 'cat', tty: true, rows: 5, cols: 6 });
  await process.writeStdin(new Uint8Array(600 * 1024));
  await process.closeStdin();
  await process.signal(15);
  await process.resize(50, 100);
  await process.kill();
  const sent = agent.received.slice(1).map(({ type, payload }) => {
    const data = payload['data'];
    return data instanceof Uint8Array ? `${type} ${data.length}` : `${type} ${JSON.stringify(payload)}`;
  });
  assert.deepEqual(sent, [
    'core.exec.stdin 262144',
    'core.exec.stdin 262144',
    'core.exec.stdin 90112',
    'core.exec.stdin 0',
    'core.exec.signal {"signal":15}',
    'core.exec.resize {"cols":100,"rows":50}',
    'core.exec.signal {"signal":9}',
  ]);
});

test('writing to a process that reads no more is refused; after the exit it does nothing', async () => {
  const { agent, client } = await withProcess();
  const process = await client.exec({ cmd: 'true' });
  agent.send(1, 'core.exec.stdin.error', { errno: 32, errno_name: 'EPIPE', message: 'Broken pipe' });
  await setImmediate();
  await assert.rejects(process.writeStdin(bytes('x')), /Broken pipe/);
  agent.send(1, 'core.exec.exited', { code: 0 });
  await process.exited;
  const before = agent.received.length;
  await process.closeStdin();
  await process.kill();
  assert.equal(agent.received.length, before);
});

test('unread output stops the connection before it fills memory, and reading it lets it go on', async () => {
  const { agent, client } = await withProcess();
  const process = await client.exec({ cmd: 'yes' });
  const frames = 64;
  for (let sent = 0; sent < frames; sent++)
    agent.send(1, 'core.exec.stdout', { data: new Uint8Array(65_536) });
  agent.send(1, 'core.exec.exited', { code: 0 });
  const pinging = client.ping();
  for (let turn = 0; turn < 100; turn++) await setImmediate();
  // The exit is behind the unread output.
  assert.equal(await Promise.race([process.exited, setImmediate('waiting')]), 'waiting');
  let total = 0;
  for await (const chunk of process.stdout) total += chunk.length;
  assert.equal(total, frames * 65_536);
  assert.equal((await process.exited).code, 0);
  agent.send(2, 'core.pong');
  await pinging;
});

test('a stream that is discarded or left early blocks no other', async () => {
  const { agent, client } = await withProcess();
  const process = await client.exec({ cmd: 'yes' });
  process.stderr.discard();
  for (let sent = 0; sent < 64; sent++) {
    agent.send(1, 'core.exec.stderr', { data: new Uint8Array(65_536) });
    agent.send(1, 'core.exec.stdout', { data: new Uint8Array(65_536) });
  }
  agent.send(1, 'core.exec.exited', { code: 0 });
  for await (const chunk of process.stdout) {
    assert.ok(chunk.length > 0);
    break;
  }
  assert.equal((await process.exited).code, 0);
});

test('aborting kills the process group and does not wait for it', async () => {
  const { agent, client } = await withProcess();
  const controller = new AbortController();
  const process = await client.exec({ cmd: 'sleep' }, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(process.exited, /enough/);
  await assert.rejects(Array.fromAsync(process.stdout), /enough/);
  assert.deepEqual(agent.received.at(-1)?.payload, { signal: 9 });
  // Its last words are dropped, and the id is free again.
  agent.send(1, 'core.exec.stdout', { data: bytes('late') });
  agent.send(1, 'core.exec.exited', { code: -1 });
});

test('run feeds the input, collects both streams and says what was cut', async () => {
  const { client } = await ScriptedAgent.connect((message, agent) => {
    if (message.type === 'core.exec.request') agent.send(message.id, 'core.exec.started', { pid: 1 });
    if (message.type !== 'core.exec.stdin') return;
    const data = message.payload['data'];
    if (data instanceof Uint8Array && data.length > 0) agent.send(message.id, 'core.exec.stdout', { data });
    else agent.send(message.id, 'core.exec.exited', { code: 0 });
  });
  const whole = await client.run({ cmd: 'cat' }, { input: bytes('hello') });
  assert.equal(text(whole.stdout), 'hello');
  assert.deepEqual(whole.truncated, []);
  const cut = await client.run({ cmd: 'cat' }, { input: bytes('hello'), maxOutputBytes: 2 });
  assert.equal(text(cut.stdout), 'he');
  assert.deepEqual(cut.truncated, ['stdout']);
  assert.equal(cut.code, 0);
});

test('run kills when its time is up and reports what there was', async () => {
  const { client } = await ScriptedAgent.connect((message, agent) => {
    if (message.type === 'core.exec.request') {
      agent.send(message.id, 'core.exec.started', { pid: 1 });
      agent.send(message.id, 'core.exec.stdout', { data: bytes('begun') });
    }
    if (message.type === 'core.exec.signal')
      agent.send(message.id, 'core.exec.exited', { code: -1, signal: 9 });
  });
  const result = await client.run({ cmd: 'sleep' }, { timeoutMs: 10 });
  assert.deepEqual([result.code, result.signal, result.reason], [-1, 9, 'timeout']);
  assert.equal(text(result.stdout), 'begun');
});

test('run gives up on a process that never starts', async () => {
  const { client } = await ScriptedAgent.connect();
  await assert.rejects(client.run({ cmd: 'x' }, { timeoutMs: 10 }), /did not start in time/);
});

test('run kills the process and fails when its input fails', async () => {
  const { client } = await ScriptedAgent.connect((message, agent) => {
    if (message.type === 'core.exec.request') agent.send(message.id, 'core.exec.started', { pid: 1 });
    if (message.type === 'core.exec.signal')
      agent.send(message.id, 'core.exec.exited', { code: -1, signal: 9 });
  });
  async function* input(): AsyncGenerator<Uint8Array> {
    yield bytes('some');
    throw new Error('the disk is gone');
  }
  await assert.rejects(client.run({ cmd: 'cat' }, { input: input() }), /the disk is gone/);
});

test('run does not wait for input that never comes when the process has exited', async () => {
  const { client } = await ScriptedAgent.connect((message, agent) => {
    if (message.type !== 'core.exec.request') return;
    agent.send(message.id, 'core.exec.started', { pid: 1 });
    agent.send(message.id, 'core.exec.exited', { code: 0 });
  });
  async function* silence(): AsyncGenerator<Uint8Array> {
    await new Promise(() => undefined);
    yield bytes('');
  }
  assert.equal((await client.run({ cmd: 'true' }, { input: silence() })).code, 0);
});
