import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Engine, collect, releaseBinary, run, shell } from './engine.ts';

test('svc.shutdown lets programs exit', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const id = session.newId();
  session.send(id, 'core.exec.request', {
    cmd: '/bin/sh',
    args: ['-c', "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.02; done"],
  });
  await session.takeType('core.exec.stdout', id);
  (await engine.control()).send(0, 'svc.shutdown', { grace_ms: 3_600_000 });
  const { stdout, end } = await collect(session, id);
  assert.deepEqual([stdout, end.payload['code']], ['bye\n', 4]);
  assert.equal(await engine.exited(), 0);
});

test('svc.shutdown kills what does not listen, stopped programs too', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  for (const script of [
    "trap '' TERM; echo ready; while :; do sleep 0.05; done",
    "trap '' TERM; echo ready; kill -STOP $$; sleep 100",
  ]) {
    const id = session.newId();
    session.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', script] });
    await session.takeType('core.exec.stdout', id);
  }
  const before = performance.now();
  (await engine.control()).send(0, 'svc.shutdown', { grace_ms: 300 });
  await session.takeType('core.exec.exited');
  assert.equal(await engine.exited(), 0);
  const took = performance.now() - before;
  assert.ok(took >= 290, `${took} ms`);
});

test('while shutting down nothing new starts', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const go = join(engine.dir, 'go');
  session.send(session.newId(), 'core.exec.request', {
    cmd: '/bin/sh',
    args: ['-c', `trap '' TERM; echo ready; until [ -e ${go} ]; do sleep 0.05; done`],
  });
  await session.takeType('core.exec.stdout');
  (await engine.control()).send(0, 'svc.shutdown', { grace_ms: 3_600_000 });
  await waitUntil(async () => (await run(session, 'true')).end.type === 'core.exec.failed', 'a refusal');
  writeFileSync(go, '');
  assert.equal(await engine.exited(), 0);
});

test('SIGTERM from outside shuts down; from inside it does nothing', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  await shell(session, 'for s in TERM INT HUP QUIT KILL STOP USR1 SEGV ABRT ALRM CHLD; do kill -$s 1; done');
  assert.equal((await shell(session, 'echo alive')).stdout, 'alive\n');
  process.kill(engine.pid, 'SIGTERM');
  assert.equal(await engine.exited(), 0);
});

test('core.shutdown of a client shuts down', async (t) => {
  const engine = await Engine.start(t);
  (await engine.session()).send(0, 'core.shutdown');
  assert.equal(await engine.exited(), 0);
});

test('orphans are reaped', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  await shell(session, 'for i in $(seq 1 300); do (sh -c "exit 0" &) ; done');
  const zombies = async (): Promise<string> =>
    (await shell(session, 'grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l')).stdout;
  await waitUntil(async () => (await zombies()) === '0\n', 'no zombie is left');
});

test('a process limit refuses new processes and nothing else', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  const session = await engine.session();
  const limited = (count: number): object => ({
    user: '54321',
    rlimits: [{ resource: 'nproc', soft: count, hard: count }],
  });
  const id = session.newId();
  const bomb = '(while :; do sleep 1000 & done) 2>/dev/null; exec sleep 1000';
  session.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', bomb], ...limited(20) });
  await session.takeType('core.exec.started', id);
  await waitUntil(async () => {
    const { end } = await run(session, 'true', [], { ...limited(10) });
    return end.type === 'core.exec.failed' && end.payload['kind'] === 'resource_limit';
  }, 'the limit is reached');
  assert.equal((await run(session, 'echo', ['fine'])).stdout, 'fine\n');
  session.send(id, 'core.exec.signal', { signal: 9 });
  await collect(session, id);
  // The leader is gone; its children may take a moment longer.
  await waitUntil(async () => {
    const { stdout } = await run(session, 'echo', ['free'], { ...limited(10) });
    return stdout === 'free\n';
  }, 'there is room again');
});

test('without free descriptors requests fail, and svc-init goes on', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary, nofile: 256 });
  const session = await engine.session();
  const ids: number[] = [];
  let kind: unknown;
  for (let i = 0; i < 200 && kind === undefined; i++) {
    const id = session.newId();
    session.send(id, 'core.exec.request', { cmd: 'sleep', args: ['1000'] });
    const answer = await session.take((frame) => frame.id === id, 'an answer');
    if (answer.type === 'core.exec.started') ids.push(id);
    else kind = answer.payload['kind'];
  }
  assert.equal(kind, 'resource_limit');
  assert.ok(ids.length > 10);
  // Redialling and new clients still work: their descriptors are kept free.
  const other = await engine.session();
  assert.equal((await other.call('core.ping')).type, 'core.pong');
  for (const id of ids) session.send(id, 'core.exec.signal', { signal: 9 });
  for (const id of ids) await collect(session, id);
  assert.equal((await run(session, 'echo', ['again'])).stdout, 'again\n');
});

test('a guest that removes /proc and the socket folder loses nothing', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const ticker = join(engine.dir, 'engine.sock');
  const { end } = await shell(session, `umount /proc; rm -f ${ticker}; echo $?`);
  assert.equal(end.payload['code'], 0);
  await engine.goAway();
  await engine.listen();
  const again = await engine.session();
  assert.equal((await run(again, 'echo', ['back'])).stdout, 'back\n');
});

test('256 connections are dialled, and one more when one ends', async (t) => {
  const engine = await Engine.start(t, { binary: releaseBinary });
  (await engine.control()).send(0, 'svc.dial', { count: 300 });
  await waitUntil(() => engine.sessions.length === 256, '256 connections');
  engine.sessions[0]?.socket.destroy();
  await waitUntil(() => engine.sessions.length === 257, 'the next one');
  assert.equal(new Set(engine.sessions.map((one) => one.number)).size, 257);
  assert.ok(engine.residentKib < 4096, `${engine.residentKib} KiB`);
});

test('a leak check finds nothing after a busy life', async (t) => {
  const engine = await Engine.start(t);
  for (let i = 0; i < 5; i++) {
    const session = await engine.session();
    await Promise.all(
      Array.from({ length: 20 }, () => shell(session, 'head -c 100000 /dev/zero; echo x >&2')),
    );
    await session.call('core.fs.request', { op: { List: { path: '/usr/bin' } } });
    await run(session, 'nothing-here');
    session.send(session.newId(), 'core.exec.request', { cmd: 'sleep', args: ['1000'] });
    session.socket.destroy();
  }
  (await engine.control()).send(0, 'svc.shutdown', { grace_ms: 100 });
  assert.equal(await engine.exited(), 0);
  assert.doesNotMatch(engine.stderr, /Sanitizer/);
});
