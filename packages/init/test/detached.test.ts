import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel, Frame, Payload } from './channel.ts';
import { Engine, releaseBinary } from './engine.ts';

type Stream = 'stdout' | 'stderr';

async function start(session: Channel, key: string, script: string, options: Payload = {}): Promise<number> {
  const request = { key, cmd: '/bin/sh', args: ['-c', script], ...options };
  const answer = await session.call('svc.detached.start', request);
  assert.equal(answer.type, 'svc.detached.started', String(answer.payload['message']));
  return answer.payload['pid'] as number;
}

/** All output of one read. Offsets must be contiguous, except for ranges that are reported as dropped. */
async function read(session: Channel, key: string, options: Payload = {}) {
  const id = session.newId();
  session.send(id, 'svc.detached.read', { key, stdout: 0, stderr: 0, follow: true, ...options });
  const end = await session.take(({ id: of, flags }) => of === id && (flags & 1) === 1, `the end of ${key}`);
  return { ...gather(session, id, options), end };
}

function gather(session: Channel, id: number, options: Payload) {
  const next = { stdout: options['stdout'] ?? 0, stderr: options['stderr'] ?? 0 } as Record<Stream, number>;
  const data: Record<Stream, Buffer[]> = { stdout: [], stderr: [] };
  const dropped: Payload[] = [];
  for (const { payload, type } of session.frames.filter((frame) => frame.id === id)) {
    const stream = payload['stream'] as Stream;
    assert.equal(payload[type === 'svc.detached.dropped' ? 'from' : 'offset'], next[stream]);
    if (type === 'svc.detached.dropped') {
      dropped.push(payload);
      next[stream] = payload['to'] as number;
    } else {
      const bytes = payload['data'] as Uint8Array;
      data[stream].push(Buffer.from(bytes));
      next[stream] += bytes.length;
    }
  }
  session.frames.splice(0, session.frames.length, ...session.frames.filter((frame) => frame.id !== id));
  const text = (stream: Stream) => Buffer.concat(data[stream]).toString();
  return { stdout: text('stdout'), stderr: text('stderr'), dropped };
}

async function list(session: Channel): Promise<readonly Payload[]> {
  return (await session.call('svc.detached.list')).payload['processes'] as Payload[];
}

async function stateOf(session: Channel, key: string): Promise<Payload | undefined> {
  return (await list(session)).find((state) => state['key'] === key);
}

const kindOf = ({ payload }: Frame) => payload['kind'];
const lines = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, i) => `line ${first + i}\n`).join('');

test('a detached process outlives the client that started it and is read by another from any offset', async (t) => {
  const engine = await Engine.start(t);
  const first = await engine.session();
  await start(first, 'job', 'echo one; echo bad >&2; read x; echo two; exit 7', { stdin: true });
  (await engine.control()).send(0, 'svc.drop', { connection: first.number });
  await first.untilEnded();

  const second = await engine.session();
  await waitUntil(async () => {
    const state = await stateOf(second, 'job');
    return state?.['stdout'] === 4 && state['stderr'] === 4;
  }, 'the first lines');
  const now = await read(second, 'job', { follow: false });
  assert.deepEqual([now.stdout, now.stderr, now.end.payload['state']], ['one\n', 'bad\n', 'running']);
  const done = await second.call('svc.detached.stdin', { key: 'job', data: Buffer.from('go\n') });
  assert.equal(done.type, 'svc.detached.done');
  const rest = await read(second, 'job', { stdout: 4, stderr: 4 });
  assert.deepEqual([rest.stdout, rest.stderr, rest.dropped], ['two\n', '', []]);
  const { code, signal, reason, stdout, stdout_from: from, by } = rest.end.payload;
  assert.deepEqual([code, signal, reason, stdout, from, by], [7, null, 'exit', 8, 0, null]);
  const only = await read(second, 'job', { stdout: null, stderr: 1 });
  assert.deepEqual([only.stdout, only.stderr], ['', 'ad\n'], 'one stream alone, and again after the end');
  assert.equal(kindOf((await read(second, 'job', { stdout: 9 })).end), 'invalid_payload');
});

test('the engine goes away and comes back, and a reader goes on where it was', async (t) => {
  const engine = await Engine.start(t);
  const before = await engine.session();
  await start(before, 'job', 'i=1; while [ $i -le 3000 ]; do echo line $i; i=$((i+1)); done; exit 3');
  const id = before.newId();
  before.send(id, 'svc.detached.read', { key: 'job', stdout: 0, follow: true });
  await before.takeType('svc.detached.output', id).then((frame) => before.frames.unshift(frame));
  const seen = gather(before, id, {}).stdout;
  await engine.goAway();
  await engine.listen();
  const rest = await read(await engine.session(), 'job', { stdout: seen.length, stderr: null });
  assert.equal(seen + rest.stdout, lines(1, 3000));
  assert.equal(rest.end.payload['code'], 3);
});

test('without a reader old output is dropped, and a later reader gets the dropped range', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const size = 200_000;
  await start(session, 'loud', `head -c ${size} /dev/zero | tr '\\0' x; echo; echo end`, {
    ring_bytes: 16384,
  });
  await waitUntil(async () => (await stateOf(session, 'loud'))?.['state'] === 'exited', 'its end');
  const { stdout, dropped, end } = await read(session, 'loud');
  const from = end.payload['stdout_from'] as number;
  assert.deepEqual(dropped, [{ stream: 'stdout', from: 0, to: from }]);
  assert.equal(from + stdout.length, size + 5);
  assert.ok(stdout.length >= 12_288 && stdout.length <= 16_384, `${stdout.length} bytes are kept`);
  assert.ok(stdout.endsWith('x\nend\n'));
});

test('a reader that is attached loses nothing: the process waits for it', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const other = await engine.session();
  const size = 8_000_000;
  await start(session, 'big', `read go; head -c ${size} /dev/zero; echo end >&2`, {
    stdin: true,
    ring_bytes: 65536,
  });
  const reading = read(session, 'big');
  await other.call('svc.detached.list');
  session.socket.pause();
  await other.call('svc.detached.stdin', { key: 'big', data: Buffer.from('\n') });
  let produced = -1;
  await waitUntil(async () => {
    const now = Number((await stateOf(other, 'big'))?.['stdout']);
    const isStill = now > 0 && now === produced;
    produced = now;
    return isStill;
  }, 'the process waits');
  assert.ok(produced < size, 'it waits for its reader');
  session.socket.resume();
  const { stdout, stderr, dropped } = await reading;
  assert.deepEqual([stdout.length, stderr, dropped], [size, 'end\n', []]);
});

test('a reader that reads nothing for 10 s no longer blocks the process, and gets the dropped range', async (t) => {
  const engine = await Engine.start(t);
  const [stuck, other] = [await engine.session(), await engine.session()];
  const size = 8_000_000;
  await start(stuck, 'big', `head -c ${size} /dev/zero`, { ring_bytes: 65536 });
  const reading = read(stuck, 'big');
  stuck.socket.pause();
  await waitUntil(async () => (await stateOf(other, 'big'))?.['state'] === 'exited', 'its end');
  stuck.socket.resume();
  const { stdout, dropped } = await reading;
  const missed = dropped.reduce((sum, { from, to }) => sum + Number(to) - Number(from), 0);
  assert.ok(missed > 0);
  assert.equal(stdout.length + missed, size);
});

test('each end has its reason', async (t) => {
  const session = await (await Engine.start(t)).session();
  await start(session, 'slow', 'sleep 100', { timeout_ms: 50 });
  await start(session, 'loud', 'yes', { output_max: 100_000 });
  await start(session, 'shot', 'kill -9 $$');
  await start(session, 'victim', 'sleep 100');
  await session.call('svc.detached.signal', { key: 'victim', signal: 15, by: 'someone@example.com' });
  await start(session, 'deaf', 'trap "exit 4" TERM; echo ready; while :; do sleep 0.01; done');
  await waitUntil(async () => (await stateOf(session, 'deaf'))?.['stdout'] === 6, 'its trap is set');
  await session.call('svc.detached.signal', { key: 'deaf', signal: 15, by: 'x' });
  const ends: Record<string, unknown[]> = {};
  for (const key of ['slow', 'loud', 'shot', 'victim', 'deaf']) {
    const { payload } = (await read(session, key, { stdout: null, stderr: null })).end;
    ends[key] = [payload['reason'], payload['code'], payload['signal'], payload['by']];
  }
  assert.deepEqual(ends, {
    slow: ['timeout', -1, 9, null],
    loud: ['output_limit', -1, 9, null],
    shot: ['signal', -1, 9, null],
    victim: ['killed_by', -1, 15, 'someone@example.com'],
    deaf: ['exit', 4, null, null],
  });
  const loud = await stateOf(session, 'loud');
  assert.equal(loud?.['stdout'], 100_000, 'the limit holds without a reader');
});

test('forgetting a process ends it and its readers, and frees the key', async (t) => {
  const engine = await Engine.start(t);
  const [session, reader] = [await engine.session(), await engine.session()];
  const pid = await start(session, 'job', 'sleep 100');
  const reading = read(reader, 'job');
  await reader.call('svc.detached.list');
  assert.equal((await session.call('svc.detached.forget', { key: 'job' })).type, 'svc.detached.done');
  assert.equal(kindOf((await reading).end), 'invalid_session');
  assert.deepEqual(await list(session), []);
  for (const type of ['forget', 'signal', 'stdin', 'resize', 'read']) {
    const payload = { key: 'job', signal: 15, data: Buffer.alloc(0), rows: 1, cols: 1 };
    assert.equal(kindOf(await session.call(`svc.detached.${type}`, payload)), 'invalid_session', type);
  }
  assert.notEqual(await start(session, 'job', 'true'), pid);
});

test('input is taken once, waits for its reader, and ends', async (t) => {
  const engine = await Engine.start(t);
  const [session, other] = [await engine.session(), await engine.session()];
  const go = join(engine.dir, 'go');
  await start(session, 'late', `until [ -e ${go} ]; do sleep 0.02; done; wc -c`, { stdin: true });
  const data = Buffer.alloc(500_000, 'y');
  const writing = session.call('svc.detached.stdin', { key: 'late', data });
  await session.call('svc.detached.list');
  assert.equal(kindOf(await other.call('svc.detached.stdin', { key: 'late', data })), 'resource_limit');
  writeFileSync(go, '');
  assert.equal((await writing).type, 'svc.detached.done');
  const ended = await other.call('svc.detached.stdin', { key: 'late', data: Buffer.alloc(0) });
  assert.equal(ended.type, 'svc.detached.done');
  const { stdout } = await read(session, 'late');
  assert.equal(stdout.trim(), '500000');
  assert.equal(kindOf(await session.call('svc.detached.stdin', { key: 'late', data })), 'invalid_session');
});

test('a terminal is detached too and can be resized', async (t) => {
  const session = await (await Engine.start(t)).session();
  await start(session, 'tty', 'read x; stty size', { tty: true, rows: 10, cols: 20, stdin: true });
  assert.equal(
    (await session.call('svc.detached.resize', { key: 'tty', rows: 33, cols: 44 })).type,
    'svc.detached.done',
  );
  await session.call('svc.detached.stdin', { key: 'tty', data: Buffer.from('\n') });
  assert.match((await read(session, 'tty')).stdout, /33 44/);
});

test('processes that ended make room for others, and all output together stays bounded', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const session = await engine.session();
  for (let first = 0; first < 1100; first += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => start(session, `job-${first + index}`, 'exit 0')),
    );
  assert.ok((await list(session)).length <= 1024);
  for (let i = 0; i < 12; i++) {
    await start(session, `big-${i}`, 'head -c 20000000 /dev/zero', { ring_bytes: 16 * 1024 * 1024 });
    await waitUntil(
      async () => (await stateOf(session, `big-${i}`))?.['state'] === 'exited',
      `the end of ${i}`,
    );
  }
  assert.ok(engine.residentKib < 100 * 1024, `${engine.residentKib} KiB`);
  const last = await stateOf(session, 'big-11');
  assert.ok(
    Number(last?.['stdout']) - Number(last?.['stdout_from']) > 12_000_000,
    'the latest keeps its output',
  );
});

test('the main process of a sandbox is not within reach of clients', async (t) => {
  const engine = await Engine.start(t);
  const control = await engine.control();
  await control.call('svc.process.start', { key: 'main', cmd: 'sleep', args: ['100'] });
  const session = await engine.session();
  assert.deepEqual(await list(session), []);
  assert.equal(kindOf(await session.call('svc.detached.forget', { key: 'main' })), 'invalid_session');
});

test('a connection has a bounded number of reads', async (t) => {
  const session = await (await Engine.start(t)).session();
  await start(session, 'job', 'sleep 100');
  for (let i = 0; i < 1024; i++) {
    session.send(session.newId(), 'svc.detached.read', { key: 'job', stdout: 0, follow: true });
  }
  assert.equal(
    kindOf(await session.call('svc.detached.read', { key: 'job', follow: true })),
    'resource_limit',
  );
  await session.call('svc.detached.forget', { key: 'job' });
  await start(session, 'job', 'echo again');
  assert.equal((await read(session, 'job')).stdout, 'again\n', 'those that ended no longer count');
});
