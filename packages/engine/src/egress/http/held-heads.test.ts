import assert from 'node:assert/strict';
import { connect as connectHttp2, constants } from 'node:http2';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { open, raw } from '../../testing/egress-attack.ts';
import type { World } from '../../testing/https-world.ts';
import { SANDBOX } from '../../testing/proxy-loopback.ts';
import { HEADS, HeldBytes, WINDOWS } from './held-bytes.ts';

const LONG = 'x'.repeat(12 * 1024);
const head = (more = '') => `GET / HTTP/1.1\r\nHost: api.test\r\n${more}\r\n`;

test('heads that are sent ahead take no more than half of what others leave, and give it back', async (t) => {
  const world = await silent(t, {});
  using others = leave(1 / 4);
  const taken = HEADS.taken;
  const sockets = await Promise.all(Array.from({ length: 10 }, () => world.connect('api.test')));
  for (const socket of sockets) socket.on('error', () => undefined).resume();
  for (const socket of sockets) for (let sent = 0; sent < 60; sent++) socket.write(head(`X: ${LONG}\r\n`));
  await waitUntil(() => sockets.some(({ destroyed }) => destroyed));
  assert.ok(sockets.some(({ destroyed }) => !destroyed));
  assert.ok(HEADS.taken - taken <= HEADS.maxBytes / 8);
  for (const socket of sockets) socket.destroy();
  await waitUntil(() => HEADS.taken === taken);
  others.dispose();
  assert.equal(HEADS.taken, 0);
});

test('a connection with too many requests ahead of their answers ends', async (t) => {
  const world = await silent(t, {});
  assert.equal(await raw(world, 'api.test', head().repeat(5000)), '');
  await waitUntil(() => HEADS.taken === 0);
});

test('a request that finds no room for its head is told so', async (t) => {
  const world = await open(t, {});
  using _ = leave(0);
  assert.equal((await world.ask('api.test')).status, 503);
  assert.deepEqual(world.begun, []);
});

test('streams of HTTP/2 find no more room for their heads than requests that are sent ahead', async (t) => {
  const world = await silent(t, { http2: true });
  const socket = await world.connect('api.test', ['h2']);
  const session = connectHttp2(`https://api.test:${world.serverPort}`, { createConnection: () => socket });
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  using others = leave(1 / 4);
  const taken = HEADS.taken;
  const refused: number[] = [];
  for (let sent = 0; sent < 800; sent++) {
    const stream = session.request({ ':path': '/', x: LONG });
    stream.on('error', () => undefined).once('close', () => refused.push(stream.rstCode));
  }
  await waitUntil(() => refused.length > 0);
  assert.equal(refused[0], constants.NGHTTP2_REFUSED_STREAM);
  assert.ok(HEADS.taken - taken <= HEADS.maxBytes / 8);
  world.proxy.proxy.forget(SANDBOX);
  await waitUntil(() => HEADS.taken === taken && WINDOWS.taken === 0);
  others.dispose();
});

/** Holds all but a fraction of the memory, as other sandboxes would. */
function leave(share: number): DisposableStack {
  const others = new DisposableStack();
  for (let bytes = HEADS.maxBytes / 2; bytes >= Math.max(1024, HEADS.maxBytes * share); bytes /= 2)
    others.adopt(new HeldBytes(HEADS).reserve(bytes), (room) => room?.[Symbol.dispose]());
  return others;
}

/** The server reads requests and never answers. */
async function silent(t: TestContext, options: Parameters<typeof open>[1]): Promise<World> {
  const world = await open(t, options);
  world.server.removeAllListeners('request').on('request', () => undefined);
  return world;
}
