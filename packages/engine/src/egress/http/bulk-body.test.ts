import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request, Agent } from 'node:https';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { makeWorld, type World } from '../../testing/https-world.ts';
import { carryBulk } from './bulk-body.ts';
import type { TakeBytes } from './exchange.ts';

const MIB = 1024 * 1024;
const BODY = randomBytes(5 * MIB + 12_345);
const CALM = { 'content-length': '5' };

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

async function serving(body: Buffer, length = body.length): Promise<World> {
  return await makeWorld({
    onRequest: ({ url }) =>
      url === '/long'
        ? { headers: { 'content-length': String(length) }, body }
        : { headers: CALM, body: 'short' },
  });
}

/** Asks over one connection, and gives the answer as it begins. */
function requester({ authority, proxy }: World): (path: string) => Promise<IncomingMessage> {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 1,
    ca: authority.certificate,
    servername: 'api.test',
  });
  return async (path) => {
    const headers = { host: 'api.test' };
    const asked = request({ agent, host: '127.0.0.1', port: proxy.port, path, headers }).end();
    const [answered] = (await once(asked, 'response')) as [IncomingMessage];
    return answered;
  };
}

test('long bodies arrive complete, and their connection serves the next request', async () => {
  await using world = await serving(BODY);
  const ask = requester(world);
  for (const path of ['/long', '/short', '/long', '/long', '/short']) {
    const answered = await buffer(await ask(path));
    if (path === '/short') assert.equal(answered.toString(), 'short');
    else assert.equal(digest(answered), digest(BODY));
  }
  assert.equal(world.connections.size, 1);
});

test('requests that were sent ahead are answered behind a long body, in their order', async () => {
  await using world = await serving(BODY);
  const socket = await world.connect('api.test');
  const asking = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: api.test\r\n${more}\r\n`;
  socket.write(asking('/long') + asking('/short'));
  // Some wait when the body begins, others come while it has the connection.
  socket.once('readable', () => socket.write(asking('/long') + asking('/short', 'Connection: close\r\n')));
  let text = (await buffer(socket)).toString('latin1');
  for (const body of [BODY.toString('latin1'), 'short', BODY.toString('latin1'), 'short']) {
    const end = text.indexOf('\r\n\r\n') + 4;
    assert.match(text.slice(0, end), /^HTTP\/1\.1 200 OK\r\n/);
    assert.ok(text.startsWith(body, end));
    text = text.slice(end + body.length);
  }
  assert.equal(text, '');
  assert.equal(world.connections.size, 1);
});

test('an incomplete long body is reported as such', async () => {
  await using world = await serving(BODY, BODY.length + 1);
  const answered = await requester(world)('/long');
  const read = buffer(answered);
  await waitUntil(() => [...world.connections].every(({ writableLength }) => writableLength === 0));
  for (const socket of world.connections) socket.destroy();
  await assert.rejects(read, /aborted/);
});

test('bytes of a server beyond the announced length are not taken for a response', async () => {
  const forged = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');
  await using world = await serving(Buffer.concat([BODY, forged]), BODY.length);
  const socket = await world.connect('api.test');
  const received: Buffer[] = [];
  socket.on('error', () => undefined).on('data', (chunk) => received.push(chunk));
  socket.write('GET /long HTTP/1.1\r\nHost: api.test\r\n\r\n');
  await once(socket, 'close');
  const text = Buffer.concat(received).toString('latin1');
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  assert.ok(!text.includes('forged'));
});

test('a client that does not read holds its server up', async (t) => {
  const { promise, resolve } = Promise.withResolvers<ServerResponse>();
  const server = createServer((_, response) => resolve(response)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const client = get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, agent: false });
  t.after(() => client.destroy());
  const response = await promise;
  response.writeHead(200, { 'content-length': String(64 * MIB) }).flushHeaders();
  const [answered] = (await once(client, 'response')) as [IncomingMessage];
  const upstream = new Duplex();
  let asks = 0;
  upstream.read = () => ((asks += 1), null);
  const takers: (TakeBytes | null)[] = [];
  const divert = (take: TakeBytes | null) => void takers.push(take);
  const carried = carryBulk({ begun: [], length: 64 * MIB, upstream, divert, response });
  const [take] = takers;
  assert.ok(take);
  const piece = new Uint8Array(MIB / 16);
  let given = 1;
  while (take(piece)) given += 1;
  assert.ok(given < 512, `${given} of 1,024 pieces were taken`);
  const before = asks;
  answered.resume();
  await waitUntil(() => asks > before);
  for (; given < 1024; given++) take(piece);
  await carried;
});
