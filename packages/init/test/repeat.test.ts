import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel, Payload } from './channel.ts';
import { Engine } from './engine.ts';

const start = async (session: Channel, key: string, script: string, options: Payload = {}) =>
  await session.call('svc.detached.start', { key, cmd: '/bin/sh', args: ['-c', script], ...options });

const bytes = (text: string) => Buffer.from(text);

async function stdoutOf(session: Channel, key: string): Promise<string> {
  const id = session.newId();
  session.send(id, 'svc.detached.read', { key, stdout: 0, follow: true });
  await session.take(({ id: of, flags }) => of === id && (flags & 1) === 1, `the end of ${key}`);
  const pieces = session.frames.filter((frame) => frame.id === id);
  return Buffer.concat(pieces.map(({ payload }) => Buffer.from(payload['data'] as Uint8Array))).toString();
}

test('a repeated start returns the process that runs, or ran, and starts none', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const first = await start(session, 'k', 'echo once; read x', { stdin: true });
  const other = await engine.session();
  const again = await start(other, 'k', 'echo twice', { repeat: true });
  assert.deepEqual([again.type, again.payload], ['svc.detached.started', first.payload]);
  const refused = await start(other, 'k', 'echo twice');
  assert.deepEqual([refused.type, refused.payload['kind']], ['core.error', 'invalid_session']);
  await other.call('svc.detached.stdin', { key: 'k', data: bytes('') });
  assert.equal(await stdoutOf(other, 'k'), 'once\n');
  assert.deepEqual((await start(other, 'k', 'echo twice', { repeat: true })).payload, first.payload);
  assert.equal((await start(other, 'new', 'true', { repeat: true })).type, 'svc.detached.started');
});

test('a start that is repeated before the first is answered gets its outcome', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const request = { key: 'k', cmd: '/nowhere', args: [] };
  session.send(session.newId(), 'svc.detached.start', request);
  const [one, two] = [session.newId(), session.newId()];
  session.send(one, 'svc.detached.start', { ...request, repeat: true });
  session.send(two, 'svc.detached.start', { ...request, repeat: true });
  for (const id of [one, two]) {
    const answer = await session.take((frame) => frame.id === id, 'an answer');
    // It failed meanwhile and was tried again, or the first still waits for its answer.
    assert.ok(['svc.detached.failed', 'core.error'].includes(answer.type), answer.type);
  }
});

test('a write with a name is taken once, goes on where it stopped, and is known after the end', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  await start(session, 'cat', 'cat', { stdin: true });
  const write = async (name: string, offset: number, text: string, from: Channel = session) =>
    await from.call('svc.detached.stdin', { key: 'cat', write: name, offset, data: bytes(text) });
  assert.equal((await write('a', 0, 'hello ')).type, 'svc.detached.done');
  assert.equal((await write('a', 0, 'hello ')).type, 'svc.detached.done');
  const other = await engine.session();
  assert.equal((await write('a', 3, 'lo world\n', other)).type, 'svc.detached.done');
  assert.equal((await write('b', 0, 'hello ')).type, 'svc.detached.done', 'another write may be equal');
  assert.equal((await write('a', 99, 'x')).payload['kind'], 'invalid_payload');
  assert.equal((await write('', 0, 'x')).payload['kind'], 'invalid_payload');
  assert.equal((await write('x'.repeat(65), 0, 'x')).payload['kind'], 'invalid_payload');
  assert.equal((await write('b', 6, '')).type, 'svc.detached.done');
  assert.equal(await stdoutOf(session, 'cat'), 'hello world\nhello ');
  assert.equal((await write('b', 6, '')).type, 'svc.detached.done', 'its end, again');
  assert.equal((await write('a', 0, 'hello world\n')).type, 'svc.detached.done');
  assert.equal((await write('c', 0, 'new')).payload['kind'], 'invalid_session');
  const recall = async (name: string) =>
    (await session.call('svc.detached.recall', { key: 'cat', write: name })).payload['bytes'];
  assert.deepEqual([await recall('a'), await recall('b'), await recall('c')], [12, 6, null]);
});

test('a write that waits in a pipe that is full is not written twice when its client left and comes back', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const data = Buffer.alloc(300_000, 'x');
  const go = join(tmpdir(), `svc-go-${process.pid}`);
  t.after(() => rm(go, { force: true }));
  await start(session, 'slow', `until [ -e ${go} ]; do sleep 0.05; done; wc -c`, { stdin: true });
  session.send(session.newId(), 'svc.detached.stdin', { key: 'slow', write: 'w', offset: 0, data });
  const other = await engine.session();
  await waitUntil(async () => {
    const { payload } = await other.call('svc.detached.recall', { key: 'slow', write: 'w' });
    return payload['bytes'] === data.length;
  }, 'it was accepted');
  (await engine.control()).send(0, 'svc.drop', { connection: session.number });
  await session.untilEnded();
  const again = other.call('svc.detached.stdin', { key: 'slow', write: 'w', offset: 0, data });
  await start(other, 'go', `touch ${go}`);
  assert.equal((await again).type, 'svc.detached.done');
  assert.equal(
    (await other.call('svc.detached.stdin', { key: 'slow', data: bytes('') })).type,
    'svc.detached.done',
  );
  assert.equal((await stdoutOf(other, 'slow')).trim(), '300000');
});

test('the oldest of many named writes is forgotten, and only that', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  await start(session, 'sink', 'cat > /dev/null', { stdin: true });
  for (let i = 0; i <= 32; i++) {
    await session.call('svc.detached.stdin', { key: 'sink', write: `w${i}`, offset: 0, data: bytes('x') });
  }
  const known = async (name: string) =>
    (await session.call('svc.detached.recall', { key: 'sink', write: name })).payload['bytes'];
  assert.deepEqual([await known('w0'), await known('w1'), await known('w32')], [null, 1, 1]);
});

test('input can be given elsewhere than at stdin, which is empty then', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  for (const fd of [3, 12, 40]) {
    const key = `at-${fd}`;
    await start(session, key, `wc -c; cat /proc/self/fd/${fd}`, { stdin: true, stdin_fd: fd });
    await session.call('svc.detached.stdin', { key, data: bytes('elsewhere') });
    await session.call('svc.detached.stdin', { key, data: bytes('') });
    assert.match(await stdoutOf(session, key), /^\s*0\nelsewhere$/);
  }
  for (const wrong of [{ stdin_fd: 1 }, { stdin_fd: 256 }, { stdin_fd: 5, tty: true }]) {
    const { type, payload } = await start(session, 'wrong', 'true', { stdin: true, ...wrong });
    assert.deepEqual([type, payload['kind']], ['core.error', 'invalid_payload']);
  }
});

test('a timeout can be set, moved and taken away while the process runs', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  await start(session, 'k', 'exec sleep 1000', { timeout_ms: 600_000 });
  const set = async (milliseconds: number) =>
    await session.call('svc.detached.timeout', { key: 'k', timeout_ms: milliseconds });
  assert.equal((await set(0)).type, 'svc.detached.done');
  assert.equal((await set(1)).type, 'svc.detached.done');
  const id = session.newId();
  session.send(id, 'svc.detached.read', { key: 'k', stdout: 0, follow: true });
  const end = await session.take(({ type }) => type === 'svc.detached.end', 'its end');
  assert.deepEqual([end.payload['reason'], end.payload['signal']], ['timeout', 9]);
  assert.equal((await set(1)).payload['kind'], 'invalid_session');
});
