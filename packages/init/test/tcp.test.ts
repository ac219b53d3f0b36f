import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel } from './channel.ts';
import { Engine } from './engine.ts';

/** A session in a sandbox whose loopback is up (its network namespace is new and empty). */
async function begin(t: TestContext): Promise<{ engine: Engine; session: Channel }> {
  const engine = await Engine.start(t);
  execFileSync('nsenter', ['-t', String(engine.pid), '-n', 'ip', 'link', 'set', 'lo', 'up']);
  return { engine, session: await engine.session() };
}

/** Runs a server inside the sandbox's network and returns once it listens. */
async function serve(t: TestContext, engine: Engine, source: string): Promise<void> {
  const child = spawn('nsenter', ['-t', String(engine.pid), '-n', process.execPath, '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
}

const echo = `require('net').createServer({allowHalfOpen:true},s=>s.pipe(s)).listen(7000,'127.0.0.1',()=>console.log(1))`;

function received(session: Channel, id: number): string {
  return Buffer.concat(
    session.frames
      .filter((frame) => frame.id === id && frame.type === 'core.tcp.data')
      .map((frame) => frame.payload['data'] as Uint8Array),
  ).toString();
}

for (const host of ['127.0.0.1', 'localhost']) {
  test(`a connection to ${host} echoes and closes by halves`, async (t) => {
    const { engine, session } = await begin(t);
    await serve(t, engine, echo);
    session.send(1, 'core.tcp.connect', { host, port: 7000 });
    await session.takeType('core.tcp.connected', 1);
    session.send(1, 'core.tcp.data', { data: Buffer.from('hello') });
    await waitUntil(() => received(session, 1) === 'hello', 'the echo');
    session.send(1, 'core.tcp.eof');
    await session.takeType('core.tcp.eof', 1);
    assert.equal((await session.takeType('core.tcp.closed', 1)).flags, 1);
  });
}

test('names are looked up in /etc/hosts and at the name server of the sandbox', async (t) => {
  const { engine, session } = await begin(t);
  await serve(t, engine, echo);
  // A name server that knows one name, and answers once with a truncated packet.
  await serve(
    t,
    engine,
    `
    const answer = (q) => { const r = Buffer.from(q); r[2] |= 0x80; const type = q[q.length - 3];
      if (!q.toString('latin1').includes('known')) { r[3] = 3; return r; }
      if (type !== 1) return r;
      r[7] = 1; return Buffer.concat([r, Buffer.from('c00c00010001000000ff00047f000001', 'hex')]); };
    const s = require('dgram').createSocket('udp4');
    s.on('message', (q, from) => { let a = answer(q);
      if (q.toString('latin1').includes('long')) { a = Buffer.from(q); a[2] |= 0x82; }
      s.send(a, from.port, from.address); });
    s.bind(53, '127.0.0.1', () => require('net').createServer(c => c.on('data', (d) => {
      const a = answer(d.subarray(2)); const l = Buffer.alloc(2); l.writeUInt16BE(a.length); c.end(Buffer.concat([l, a])); }))
      .listen(53, '127.0.0.1', () => console.log(1)));`,
  );
  execFileSync('nsenter', [
    '-t',
    String(engine.pid),
    '-m',
    'sh',
    '-c',
    `printf 'nameserver 127.0.0.1\\nsearch inner\\n' > ${engine.dir}/resolv; mount --bind ${engine.dir}/resolv /etc/resolv.conf;
     printf '127.0.0.1 in-hosts\\n' > ${engine.dir}/hosts; mount --bind ${engine.dir}/hosts /etc/hosts`,
  ]);
  let id = 1;
  for (const host of ['in-hosts', 'known.example', 'known', 'known.long.example']) {
    session.send(++id, 'core.tcp.connect', { host, port: 7000 });
    const answer = await session.take((frame) => frame.id === id, host);
    assert.equal(answer.type, 'core.tcp.connected', `${host} ${JSON.stringify(answer.payload)}`);
  }
  session.send(++id, 'core.tcp.connect', { host: 'nowhere.example', port: 7000 });
  assert.match((await session.takeType('core.tcp.failed', id)).payload['error'] as string, /resolved/);
});

test('an impossible connection fails, and data for an unknown id too', async (t) => {
  const { session } = await begin(t);
  session.send(1, 'core.tcp.connect', { host: '127.0.0.1', port: 7001 });
  assert.match((await session.takeType('core.tcp.failed', 1)).payload['error'] as string, /refused/);
  session.send(2, 'core.tcp.data', { data: Buffer.from('x') });
  assert.equal((await session.takeType('core.tcp.failed', 2)).payload['error'], 'unknown TCP session');
  session.send(3, 'core.tcp.connect', { host: '127.0.0.1', port: 0 });
  assert.equal((await session.takeType('core.error', 3)).payload['kind'], 'invalid_payload');
});

test('the other side closing first, and core.tcp.close, both free the stream', async (t) => {
  const { engine, session } = await begin(t);
  const control = await engine.control();
  await serve(
    t,
    engine,
    `require('net').createServer({allowHalfOpen:true},s=>s.end('bye')).listen(7000,'127.0.0.1',()=>console.log(1))`,
  );
  session.send(1, 'core.tcp.connect', { host: '127.0.0.1', port: 7000 });
  await session.takeType('core.tcp.eof', 1);
  assert.equal(received(session, 1), 'bye');
  session.send(1, 'core.tcp.eof');
  await session.takeType('core.tcp.closed', 1);
  session.send(2, 'core.tcp.connect', { host: '127.0.0.1', port: 7000 });
  await session.takeType('core.tcp.connected', 2);
  session.send(2, 'core.tcp.close');
  await control.take(
    (frame) =>
      frame.type === 'svc.status' &&
      frame.payload['active_streams'] === 0 &&
      (frame.payload['activity_seq'] as number) > 5,
    'no stream',
  );
});

test('megabytes pass both ways, and a slow reader inside holds only its own stream', async (t) => {
  const { engine, session } = await begin(t);
  await serve(
    t,
    engine,
    `const n=require('net');
    n.createServer({allowHalfOpen:true},s=>s.pipe(s)).listen(7000,'127.0.0.1',
      ()=>n.createServer(s=>s.pause()).listen(7002,'127.0.0.1',()=>console.log(1)))`,
  );
  const other = await engine.session();
  session.send(1, 'core.tcp.connect', { host: '127.0.0.1', port: 7002 });
  await session.takeType('core.tcp.connected', 1);
  for (let i = 0; i < 30; i++) session.send(1, 'core.tcp.data', { data: Buffer.alloc(1_000_000) });
  other.send(2, 'core.tcp.connect', { host: '127.0.0.1', port: 7000 });
  await other.takeType('core.tcp.connected', 2);
  for (let i = 0; i < 80; i++) other.send(2, 'core.tcp.data', { data: Buffer.alloc(100_000, 97) });
  other.send(2, 'core.tcp.eof');
  await other.takeType('core.tcp.closed', 2);
  assert.equal(received(other, 2).length, 8_000_000);
  session.socket.destroy();
});
