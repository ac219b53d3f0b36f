import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { open, overHttp2, raw } from '../../testing/egress-attack.ts';
import { PLACEHOLDER, SECRET_VALUE } from '../../testing/https-world.ts';
import { BODIES, HeldBytes } from './held-bytes.ts';

/** As much as one sandbox may hold while the others hold nothing. */
const HALF_BYTES = 64 << 20;

test('a trailer behind what is not looked into, and one over HTTP/2, are looked at before anything is sent', async (t) => {
  const world = await open(t, { http2: true });
  const message = `POST / HTTP/1.1\r\nHost: other.test\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Late: ${PLACEHOLDER}\r\n\r\n`;
  assert.equal(await raw(world, 'other.test', message), '');
  const late = { 'x-late': PLACEHOLDER };
  assert.equal(await overHttp2(world, 'other.test', { ':method': 'POST' }, ['x'], late), 'reset');
  await waitUntil(() => world.violations.length === 2);
  assert.deepEqual(world.begun, []);
  assert.equal(await overHttp2(world, 'api.test', { ':method': 'POST' }, ['x'], late), 200);
  assert.deepEqual(world.seen[0]?.trailers, ['x-late', SECRET_VALUE]);
});

test('a clean body reaches a host that is not allowed whole, also when it is announced, sent ahead, or long', async (t) => {
  const world = await open(t, {});
  const long = 'x'.repeat((16 << 20) + (2 << 20));
  const chunked = { 'transfer-encoding': 'chunked' };
  const post = { method: 'POST', path: '/length' };
  await world.ask('other.test', { ...post, headers: { expect: '100-continue' }, body: 'asked' });
  await world.ask('other.test', { ...post, body: long });
  await world.ask('other.test', { ...post, headers: chunked, body: long });
  assert.deepEqual(
    world.seen.map(({ body }) => body.length),
    [5, long.length, long.length],
  );
  const ahead = `POST /1 HTTP/1.1\r\nHost: other.test\r\nContent-Length: 1\r\n\r\nx`;
  await raw(world, 'other.test', `${ahead}GET /2 HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n`);
  await waitUntil(() => world.begun.length === 5);
  assert.deepEqual(world.begun.slice(3), ['POST /1', 'GET /2'], 'in the order in which they were sent');
});

test('a body longer than is held is cut off where a placeholder begins', async (t) => {
  for (const http2 of [false, true]) {
    const world = await open(t, { http2 });
    const long = 'x'.repeat((16 << 20) + (2 << 20)) + PLACEHOLDER;
    if (http2) assert.equal(await overHttp2(world, 'other.test', { ':method': 'POST' }, [long]), 'reset');
    else await assert.rejects(world.ask('other.test', { method: 'POST', body: long }));
    await waitUntil(() => world.violations.length === 1);
    assert.deepEqual([world.begun.length, world.seen.length], [1, 0]);
  }
});

test('a body streams to a host that may have every secret, before it is whole', async (t) => {
  const world = await open(t, {});
  const socket = await world.connect('api.test');
  t.after(() => void socket.destroy());
  socket.write('POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 100\r\n\r\nbegin');
  await waitUntil(() => world.begun.length === 1);
});

test('bodies that never end take no more than half of what others leave, and give it back', async (t) => {
  const world = await open(t, {});
  const [one, other] = [new HeldBytes(BODIES), new HeldBytes(BODIES)];
  const socket = await world.connect('other.test');
  socket.write(`POST / HTTP/1.1\r\nHost: other.test\r\nContent-Length: ${16 << 20}\r\n\r\nbegin`);
  await waitUntil(() => isTaken(one));
  socket.destroy();
  await waitUntil(() => !isTaken(one));
  using first = one.reserve(HALF_BYTES);
  assert.ok(first);
  assert.equal(one.reserve(1), null);
  using second = other.reserve(HALF_BYTES / 2);
  assert.ok(second);
  assert.equal(other.reserve(1), null);
  await assert.rejects(
    world.ask('other.test', { method: 'POST', body: Buffer.alloc(17 << 20) }),
    { code: 'ECONNRESET' },
    'half of what is left is too little for this',
  );
});

/** Whether any bytes of the budget are reserved. */
function isTaken(budget: HeldBytes): boolean {
  using all = budget.reserve(HALF_BYTES);
  return all === null;
}
