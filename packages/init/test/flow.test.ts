import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Engine, collect, releaseBinary, run } from './engine.ts';

const MIB = 1024 * 1024;

/** Resolves once a number has stopped changing while all processes of the sandbox slept, and returns it. */
async function settled(engine: Engine, read: () => number): Promise<number> {
  let last = -1;
  let same = 0;
  await waitUntil(() => {
    const now = read();
    same = now === last && areAsleep(engine.pid) ? same + 1 : 0;
    last = now;
    return same >= 20;
  }, 'a number that stays the same');
  return last;
}

/** Whether a process and its descendants sleep. A process that waits for a CPU does not sleep. */
function areAsleep(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return /^State:\tS/m.test(status) && startedBy(pid).every(areAsleep);
  } catch {
    // It has just ended: then there was something to do.
    return false;
  }
}

function startedBy(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return (children.match(/\d+/g) ?? []).map(Number);
}

test('a client that stops reading stops its producer, and no other', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const stuck = await engine.session();
  const other = await engine.session();
  const produced = join(engine.dir, 'produced');
  const id = stuck.newId();
  stuck.socket.pause();
  const script = `i=0; while :; do head -c 65536 /dev/zero; i=$((i+1)); echo $i > ${produced}; done`;
  stuck.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', script] });
  await waitUntil(() => statSync(produced, { throwIfNoEntry: false }) !== undefined, 'the producer runs');
  await settled(engine, () => statSync(produced).mtimeMs);
  const resident = engine.residentKib;
  assert.ok(resident < 4096, `svc-init holds ${resident} KiB`);
  // The other connection is served as if nothing were wrong.
  for (let i = 0; i < 20; i++) assert.equal((await run(other, 'echo', ['x'])).stdout, 'x\n');
  // A client that does not read can still kill.
  stuck.send(id, 'core.exec.signal', { signal: 9 });
  await settled(engine, () => statSync(produced).mtimeMs);
  stuck.socket.resume();
  const { end } = await collect(stuck, id);
  assert.equal(end.payload['signal'], 9);
  assert.ok(stuck.bytesReceived < 8 * MIB, `${stuck.bytesReceived} bytes had piled up`);
});

test('yes runs for a stuck client without memory growth', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const stuck = await engine.session();
  stuck.socket.pause();
  for (let i = 0; i < 8; i++) stuck.send(stuck.newId(), 'core.exec.request', { cmd: 'yes' });
  await waitUntil(() => startedBy(engine.pid).length === 8, 'they run');
  const first = await settled(engine, () => engine.residentKib);
  const second = await settled(engine, () => engine.residentKib);
  assert.ok(second <= first + 64 && second < 6144, `${first} KiB, then ${second} KiB`);
});

test('a process that does not read its stdin stops the writer, and can be killed', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const session = await engine.session();
  const id = session.newId();
  session.send(id, 'core.exec.request', { cmd: 'sleep', args: ['1000'] });
  await session.takeType('core.exec.started', id);
  session.send(id, 'core.exec.stdin', { data: Buffer.alloc(4 * MIB - 1024) });
  session.send(id, 'core.exec.stdin', { data: Buffer.alloc(0) });
  assert.equal((await session.call('core.ping')).type, 'core.pong');
  session.send(id, 'core.exec.signal', { signal: 9 });
  assert.equal((await collect(session, id)).end.payload['signal'], 9);
  // Far more than the bounds: svc-init leaves it in the socket, and the connection recovers when the process ends.
  const flooded = session.newId();
  session.send(flooded, 'core.exec.request', { cmd: 'sleep', args: ['1000'] });
  const { payload } = await session.takeType('core.exec.started', flooded);
  for (let i = 0; i < 40; i++) session.send(flooded, 'core.exec.stdin', { data: Buffer.alloc(MIB) });
  const resident = await settled(engine, () => engine.residentKib);
  assert.ok(resident < 8 * 1024, `svc-init holds ${resident} KiB`);
  assert.ok(session.socket.writableLength > 20 * MIB);
  await run(await engine.session(), 'kill', [String(payload['pid'])]);
  assert.equal((await collect(session, flooded)).end.payload['signal'], 15);
  assert.equal((await session.call('core.ping')).type, 'core.pong');
});

test('100 MiB go through cat and come back unchanged in number', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const session = await engine.session();
  const id = session.newId();
  session.send(id, 'core.exec.request', { cmd: 'cat' });
  for (let i = 0; i < 100; i++) session.send(id, 'core.exec.stdin', { data: Buffer.alloc(MIB, i) });
  session.send(id, 'core.exec.stdin', { data: Buffer.alloc(0) });
  await session.takeType('core.exec.exited', id);
  const sum = session.frames.reduce(
    (total, frame) => total + ((frame.payload['data'] as Uint8Array | undefined)?.length ?? 0),
    0,
  );
  assert.equal(sum, 100 * MIB);
});

test('a slow client gets all output of a process that ended and left a child holding the pipe', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const slow = await engine.session();
  const other = await engine.session();
  slow.socket.pause();
  const flood = slow.newId();
  slow.send(flood, 'core.exec.request', { cmd: 'yes' });
  const done = join(engine.dir, 'done');
  const id = slow.newId();
  const script = `sleep 30 & head -c 1000000 /dev/zero; echo $$ > ${done}`;
  slow.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', script] });
  await waitUntil(
    () => existsSync(done) && readFileSync(done, 'utf8').endsWith('\n'),
    'everything is in the pipe',
  );
  await waitUntil(
    async () =>
      (await run(other, 'kill', ['-0', readFileSync(done, 'utf8').trim()])).end.payload['code'] !== 0,
    'the process has ended',
  );
  const since = Date.now();
  await waitUntil(() => Date.now() - since > 400, 'far more than the quiet time has passed');
  slow.send(flood, 'core.exec.signal', { signal: 9 });
  slow.socket.resume();
  await slow.takeType('core.exec.exited', flood);
  const { stdout, end } = await collect(slow, id);
  assert.deepEqual([stdout.length, end.payload['code']], [1_000_000, 0]);
});
