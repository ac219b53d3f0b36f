import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { exchangeTcp, rulesFor } from '../../testing/proxy-loopback.ts';
import { makeWorld, type World } from '../../testing/https-world.ts';
import { waitUntil } from '@svc/contract/testing';

test('a request and its response pass with unchanged headers and bodies', async () => {
  await using world = await makeWorld({
    onRequest: (_, body) => ({ status: 201, headers: { 'X-Answer': 'yes' }, body }),
  });
  const options = {
    method: 'POST',
    path: '/path?query=1',
    headers: { 'X-Mixed-Case': 'a  b' },
    body: 'hello',
  };
  const answer = await world.ask('api.test', options);
  assert.deepEqual([answer.status, answer.body, answer.headers['x-answer']], [201, 'hello', 'yes']);
  const [seen] = world.seen;
  assert.equal(seen?.url, '/path?query=1');
  assert.deepEqual(seen?.headers.slice(seen.headers.indexOf('X-Mixed-Case')).slice(0, 2), [
    'X-Mixed-Case',
    'a  b',
  ]);
});

test('many requests on one connection use one connection to the server', async () => {
  await using world = await makeWorld();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let count = 0; count < 20; count++)
    assert.equal((await world.ask('api.test', { agent, path: `/${count}` })).status, 200);
  agent.destroy();
  assert.equal(world.connections.size, 1);
  assert.deepEqual(
    world.seen.map(({ url }) => url),
    Array.from({ length: 20 }, (_, count) => `/${count}`),
  );
});

test('bodies without a length pass in both directions, with trailers', async () => {
  await using world = await makeWorld();
  const socket = await world.connect('api.test');
  socket.write('POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n');
  socket.write('5\r\nhello\r\n0\r\nX-Late: yes\r\n\r\n');
  await once(socket, 'data');
  socket.destroy();
  assert.equal(world.seen[0]?.body, 'hello');
  assert.deepEqual(world.seen[0]?.trailers, ['X-Late', 'yes']);
});

test('requests that were sent ahead are answered in order', async () => {
  await using world = await makeWorld({ onRequest: ({ url }) => ({ body: `<${url}>` }) });
  const socket = await world.connect('api.test');
  socket.write([1, 2, 3].map((number) => `GET /${number} HTTP/1.1\r\nHost: api.test\r\n\r\n`).join(''));
  let text = '';
  socket.on('data', (chunk) => (text += chunk));
  await waitUntil(() => text.includes('</3>'));
  socket.destroy();
  assert.match(text, /<\/1>[^]*<\/2>[^]*<\/3>/);
});

test('requests of a removed sandbox end, also with a body that is half sent', async () => {
  await using world = await makeWorld({ http2: true });
  const socket = await world.connect('api.test');
  socket.on('error', () => undefined);
  socket.write('PUT /half HTTP/1.1\r\nHost: api.test\r\nContent-Length: 100000\r\n\r\nhalf');
  const session = await openHttp2(world, 'api.test');
  const stream = session.request({ ':method': 'PUT', ':path': '/half' });
  stream.on('error', () => undefined).write('half');
  await waitUntil(() => world.begun.length === 2);
  world.proxy.proxy.forget('127.0.0.1');
  await waitUntil(() => socket.destroyed && session.destroyed);
  await waitUntil(() => [...world.connections].every(({ destroyed }) => destroyed));
  assert.deepEqual(world.seen, [], 'no request came whole');
});

test('a client that waits for permission to send its body gets it from the server', async () => {
  await using world = await makeWorld({ onRequest: (_, body) => ({ body }) });
  const socket = await world.connect('api.test');
  socket.write('PUT / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n');
  const [permission] = await once(socket, 'data');
  assert.match(String(permission), /^HTTP\/1.1 100 /);
  socket.write('hello');
  await waitUntil(() => world.seen.length === 1);
  socket.destroy();
  assert.equal(world.seen[0]?.body, 'hello');
});

test('websockets are let through once the server agrees', async () => {
  await using world = await makeWorld();
  world.server.on('upgrade', (incoming: { headers: Record<string, string> }, socket: Socket) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Key: ${incoming.headers['sec-websocket-key']}\r\n\r\n`,
    );
    socket.pipe(socket);
  });
  const socket = await world.connect('api.test');
  let text = '';
  socket.on('data', (chunk) => (text += chunk));
  socket.write(
    'GET /socket HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\nearly',
  );
  await waitUntil(() => text.endsWith('early'));
  socket.write('frames');
  await waitUntil(() => text.endsWith('earlyframes'));
  assert.match(text, /^HTTP\/1.1 101 [^]*X-Key: abc\r\n/);
  socket.destroy();
});

test('HTTP/2 is spoken when server and client both can, with all streams at once', async () => {
  await using world = await makeWorld({
    http2: true,
    onRequest: ({ url }, body) => ({ body: `${url} ${body.toString()}` }),
  });
  const session = await openHttp2(world, 'api.test');
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, number) =>
      askHttp2(session, { ':path': `/${number}`, ':method': 'POST' }, `body ${number}`),
    ),
  );
  session.destroy();
  assert.deepEqual(
    answers.map(({ body }) => body),
    Array.from({ length: 50 }, (_, number) => `/${number} body ${number}`),
  );
  assert.equal(world.connections.size, 1);
});

test('a client is offered the protocol of the server, and no other', async () => {
  await using world = await makeWorld();
  const socket = await world.connect('api.test', ['h2', 'http/1.1']);
  assert.equal(socket.alpnProtocol, 'http/1.1');
  socket.destroy();
});

test('a large body streams both ways', async () => {
  const size = 8 << 20;
  await using world = await makeWorld({ onRequest: (_, body) => ({ body }) });
  const answer = await world.ask('api.test', { method: 'POST', body: Buffer.alloc(size, 'x') });
  assert.equal(answer.body.length, size);
});

test('the certificate is for the name asked for, by our authority, and is kept', async () => {
  await using world = await makeWorld();
  const serials = new Set<string>();
  for (let count = 0; count < 2; count++) {
    const socket = await world.connect('api.test');
    const certificate = new X509Certificate(socket.getPeerCertificate().raw);
    socket.destroy();
    assert.equal(certificate.subjectAltName, 'DNS:api.test');
    assert.ok(certificate.verify(new X509Certificate(world.authority.certificate).publicKey));
    serials.add(certificate.serialNumber);
  }
  assert.equal(serials.size, 1);
});

test('a server with a certificate of an untrusted authority gets no request', async () => {
  await using world = await makeWorld({ isServerTrusted: false });
  await assert.rejects(world.ask('api.test'), { code: 'ECONNRESET' });
  assert.deepEqual(world.refusals, [{ name: 'api.test', reason: 'upstream_not_verified' }]);
  assert.deepEqual(world.seen, []);
});

test('a server with a certificate for another name gets no request', async () => {
  await using world = await makeWorld({ serverNames: 'evil.test' });
  await assert.rejects(world.ask('api.test'), { code: 'ECONNRESET' });
  assert.deepEqual(world.refusals, [{ name: 'api.test', reason: 'upstream_not_verified' }]);
});

test('verification can be disabled for some hosts, and for those alone', async () => {
  const trust = { scopedVerifyUpstream: [{ pattern: '*.test', verify: false }] };
  await using world = await makeWorld({ isServerTrusted: false, trust });
  assert.equal((await world.ask('api.test')).status, 200);
  await using other = await makeWorld({
    isServerTrusted: false,
    trust: { scopedVerifyUpstream: [{ pattern: 'else.test', verify: false }] },
  });
  await assert.rejects(other.ask('api.test'), { code: 'ECONNRESET' });
});

test('connections to a host on the bypass list are not intercepted', async () => {
  await using world = await makeWorld({ egress: { isBypassed: (name) => name === 'api.test' } });
  await assert.rejects(world.ask('api.test'), /self-signed|unable to (get|verify)/);
  assert.equal(world.connections.size, 1, 'the client met the server itself');
});

test('without a name the certificate is for the address, and checked so', async () => {
  await using world = await makeWorld({ serverNames: '127.0.0.1', rules: rulesFor('all') });
  const answer = await world.ask('127.0.0.1', { servername: '' });
  assert.equal(answer.status, 200);
  await using named = await makeWorld({ rules: rulesFor('all') });
  await assert.rejects(named.ask('127.0.0.1', { servername: '' }), { code: 'ECONNRESET' });
  assert.deepEqual(
    named.refusals.map(({ reason }) => reason),
    ['upstream_not_verified'],
  );
});

test('on an intercepted port only readable protocols pass', async () => {
  await using world = await makeWorld();
  assert.equal(await exchangeTcp(world.proxy.port, 'SSH-2.0-client\r\n', { end: false }), 'ECONNRESET');
  assert.equal(
    await exchangeTcp(world.proxy.port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', { end: false }),
    'ECONNRESET',
  );
  await assert.rejects(world.connect('api.test', ['imap']), { code: 'ECONNRESET' });
  assert.equal(world.connections.size, 0);
});

async function openHttp2(world: World, host: string): Promise<ClientHttp2Session> {
  const socket = await world.connect(host, ['h2']);
  const session = connectHttp2(`https://${host}:${world.serverPort}`, { createConnection: () => socket });
  session.on('error', () => undefined);
  await once(session, 'connect');
  return session;
}

async function askHttp2(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body = '',
): Promise<{ status: number; body: string }> {
  const stream = session.request(headers);
  stream.end(body);
  const [answer] = await once(stream, 'response');
  return { status: answer[':status'], body: (await buffer(stream)).toString() };
}
