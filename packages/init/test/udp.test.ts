import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel } from './channel.ts';
import { Engine } from './engine.ts';

const PORT = 7001;
const ECHO = `const s=require('dgram').createSocket('udp4');s.on('message',(m,r)=>s.send(m,r.port,r.address));s.bind(${PORT},'127.0.0.1',()=>console.log(1))`;

/** A session in a sandbox whose loopback is up, with an echo service. */
async function begin(t: TestContext): Promise<{ engine: Engine; session: Channel }> {
  const engine = await Engine.start(t);
  execFileSync('nsenter', ['-t', String(engine.pid), '-n', 'ip', 'link', 'set', 'lo', 'up']);
  const child = spawn('nsenter', ['-t', String(engine.pid), '-n', process.execPath, '-e', ECHO], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return { engine, session: await engine.session() };
}

function lengths(session: Channel, id: number): readonly number[] {
  return session.frames
    .filter((frame) => frame.id === id && frame.type === 'svc.udp.data')
    .map((frame) => (frame.payload['data'] as Uint8Array).length);
}

test('datagrams keep their bounds, up to the largest, and sessions are apart', async (t) => {
  const { session } = await begin(t);
  for (const id of [1, 2]) {
    session.send(id, 'svc.udp.open', { port: PORT });
    await session.takeType('svc.udp.opened', id);
  }
  for (const length of [1, 0, 1500, 65_507]) {
    session.send(1, 'svc.udp.data', { data: Buffer.alloc(length, 1) });
    await waitUntil(() => lengths(session, 1).at(-1) === length, `the echo of ${length} bytes`);
  }
  assert.deepEqual([lengths(session, 1), lengths(session, 2)], [[1, 0, 1500, 65_507], []]);
  // One that is too large for UDP is lost, the next one is not.
  session.send(1, 'svc.udp.data', { data: Buffer.alloc(65_508) });
  session.send(1, 'svc.udp.data', { data: Buffer.alloc(7) });
  await waitUntil(() => lengths(session, 1).at(-1) === 7, 'the echo after one that is too large');
});

test('a closed session is unknown, its id free, and an id in use is refused', async (t) => {
  const { session } = await begin(t);
  session.send(1, 'svc.udp.open', { port: PORT });
  await session.takeType('svc.udp.opened', 1);
  session.send(1, 'svc.udp.open', { port: PORT });
  assert.equal((await session.takeType('core.error', 1)).payload['kind'], 'invalid_session');
  session.send(1, 'svc.udp.close', {});
  session.send(1, 'svc.udp.data', { data: Buffer.of(1) });
  assert.equal((await session.takeType('svc.udp.failed', 1)).flags, 1);
  session.send(1, 'svc.udp.open', { port: PORT });
  await session.takeType('svc.udp.opened', 1);
});

test('a port out of range is malformed, and datagrams to a closed port are dropped', async (t) => {
  const { session } = await begin(t);
  for (const port of [0, 65_536]) {
    session.send(1, 'svc.udp.open', { port });
    assert.equal((await session.takeType('core.error', 1)).payload['kind'], 'invalid_payload');
  }
  session.send(1, 'svc.udp.open', { port: PORT + 1 });
  await session.takeType('svc.udp.opened', 1);
  for (let count = 0; count < 20; count++) session.send(1, 'svc.udp.data', { data: Buffer.of(count) });
  session.send(2, 'core.ping', {});
  await session.takeType('core.pong', 2);
  assert.deepEqual(lengths(session, 1), []);
});
