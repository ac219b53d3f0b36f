import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '../frames/frame.ts';
import { ChannelError, ExecFailed } from './channel-error.ts';
import type { DetachedEvent } from './detached-output.ts';
import { ScriptedAgent } from '../testing/scripted-agent.ts';

const STATE = {
  key: 'k',
  pid: 7,
  state: 'exited',
  code: -1,
  signal: 15,
  reason: 'killed_by',
  by: 'another',
  stdout: 10,
  stderr: 0,
  stdout_from: 4,
  stderr_from: 0,
  tty: false,
  started_at_ns: 1_700_000_000_000_000_000n,
  exited_at_ns: 1_700_000_001_000_000_000n,
};

test('a start carries the request, and returns pid and time', async () => {
  const { agent, client } = await ScriptedAgent.connect(({ id }, to) =>
    to.send(id, 'svc.detached.started', { pid: 7, started_at_ns: 1_700_000_000_000_000_000n }),
  );
  const started = await client.detached.start({
    key: 'k',
    cmd: 'sh',
    args: ['-c', 'x'],
    timeoutMs: 5,
    outputMax: 9,
  });
  assert.deepEqual(started, { pid: 7, startedAtMs: 1_700_000_000_000 });
  const {
    key,
    cmd,
    args,
    timeout_ms: timeout,
    output_max: most,
    stdin,
    ring_bytes: ring,
  } = agent.received[0]?.payload ?? {};
  assert.deepEqual([key, cmd, args, timeout, most, stdin, ring], ['k', 'sh', ['-c', 'x'], 5, 9, false, null]);
});

test('a start that fails says why', async () => {
  const { client } = await ScriptedAgent.connect(({ id }, to) =>
    to.send(id, 'svc.detached.failed', { kind: 'not_found', message: 'no such program' }),
  );
  await assert.rejects(
    client.detached.start({ key: 'k', cmd: 'x' }),
    (error: unknown) => error instanceof ExecFailed && error.kind === 'not_found',
  );
});

test('a refusal keeps the error code of the sandbox', async () => {
  const { client } = await ScriptedAgent.connect(({ id }, to) =>
    to.send(id, 'core.error', { kind: 'invalid_session', message: 'no process has this key' }),
  );
  const refused = (error: unknown) => error instanceof ChannelError && error.refusal === 'invalid_session';
  await assert.rejects(client.detached.signal('k', 15, null), refused);
  await assert.rejects(client.detached.forget('k'), refused);
  await assert.rejects(client.detached.start({ key: 'k', cmd: 'x' }), refused);
  await assert.rejects(client.detached.read('k', { follow: true }).next(), refused);
});

test('states are read whole, and what makes no sense is refused', async () => {
  const { client } = await ScriptedAgent.connect(({ id }, to) => {
    to.send(id, 'svc.detached.listed', { processes: [STATE, { ...STATE, state: 'running', reason: null }] });
  });
  const [ended, running] = await client.detached.list();
  assert.deepEqual(ended, {
    key: 'k',
    pid: 7,
    tty: false,
    startedAtMs: 1_700_000_000_000,
    end: { code: null, signal: 15, reason: 'killed_by', by: 'another', atMs: 1_700_000_001_000 },
    stdout: { from: 4, to: 10 },
    stderr: { from: 0, to: 0 },
  });
  assert.equal(running?.end, null);
  const { client: other } = await ScriptedAgent.connect(({ id }, to) =>
    to.send(id, 'svc.detached.listed', { processes: [{ key: 'k' }] }),
  );
  await assert.rejects(other.detached.list(), ChannelError);
});

test('a read gives output, what was dropped, and the end, in order', async () => {
  const { client } = await ScriptedAgent.connect(({ id, payload }: Message, to) => {
    assert.deepEqual([payload['stdout'], payload['stderr'], payload['follow']], [2, null, true]);
    to.send(id, 'svc.detached.dropped', { stream: 'stdout', from: 2, to: 4 });
    to.send(id, 'svc.detached.output', { stream: 'stdout', offset: 4, data: Buffer.from('ab') });
    to.send(id, 'svc.detached.output', { stream: 'stdout', offset: 6, data: Buffer.from('cdef') });
    to.send(id, 'svc.detached.end', STATE);
  });
  const events: DetachedEvent[] = [];
  for await (const event of client.detached.read('k', { stdout: 2, follow: true })) events.push(event);
  assert.deepEqual(
    events.map((event) => (event.type === 'output' ? Buffer.from(event.data).toString() : event.type)),
    ['dropped', 'ab', 'cdef', 'end'],
  );
});

test('a reader that is slow holds the connection up, and what is held is bounded', async () => {
  let sent = 0;
  const { agent, client } = await ScriptedAgent.connect();
  const reading = client.detached.read('k', { stdout: 0, follow: true });
  const first = reading.next();
  const piece = Buffer.alloc(64 * 1024);
  for (; sent < 64; sent++) {
    agent.send(1, 'svc.detached.output', { stream: 'stdout', offset: sent * piece.length, data: piece });
  }
  await first;
  // The answer to a ping waits behind the unread output.
  const ping = client.ping();
  agent.send(2, 'core.pong');
  const winner = await Promise.race([
    ping.then(() => 'ping'),
    new Promise((resolve) => setImmediate(() => resolve('held'))),
  ]);
  assert.equal(winner, 'held');
  agent.send(1, 'svc.detached.end', STATE);
  let length = piece.length;
  for await (const event of reading) if (event.type === 'output') length += event.data.length;
  assert.equal(length, 64 * piece.length);
  await ping;
});

test('a connection that breaks ends a read with its error, after what came before', async () => {
  const { agent, client } = await ScriptedAgent.connect(({ id }, to) => {
    to.send(id, 'svc.detached.output', { stream: 'stderr', offset: 0, data: Buffer.from('x') });
    to.hangUp();
  });
  const reading = client.detached.read('k', { stderr: 0, follow: true });
  assert.equal((await reading.next()).done, false);
  await assert.rejects(
    reading.next(),
    (error: unknown) => error instanceof ChannelError && error.kind === 'closed',
  );
  assert.ok(agent.isClosed);
});
