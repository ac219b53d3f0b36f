import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { waitUntil } from '@svc/contract/testing';
import {
  exchangeTcp,
  listenTcp,
  rulesFor,
  startProxy,
  type TestProxy,
} from '../../testing/proxy-loopback.ts';
import type { SandboxEgress } from './sandbox-egress.ts';
import type { ProxyLimits } from './transparent-proxy.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n';
const PATIENT = { silenceMs: 60_000 };

test('bytes pass both ways, and an end on one side leaves the other open', async (t) => {
  const { proxy } = await world(t, (socket) => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => socket.end(`got ${Buffer.concat(chunks).length}`));
  });
  assert.equal(await exchangeTcp(proxy.port, Buffer.alloc(5_000_000, 'x')), 'got 5000000');
});

test('a destination that reads nothing stops the sender, not the proxy', async (t) => {
  const { proxy } = await world(t, (socket) => {
    socket.pause();
    setImmediate(() => socket.pause());
  });
  const client = connect({ host: '127.0.0.1', port: proxy.port });
  t.after(() => client.destroy());
  const block = Buffer.alloc(1 << 20, 'x');
  let written = 0;
  const fill = () => {
    while (client.write(block) || client.writableLength < block.length)
      if ((written += block.length) > 1 << 28) return;
  };
  client.on('drain', fill);
  fill();
  await waitUntil(() => client.writableLength > 0 && proxy.accepted.size === 1);
  const [accepted] = proxy.accepted;
  await waitUntil(() => accepted?.isPaused() === true);
  assert.ok((accepted?.bytesRead ?? 0) < 1 << 26, 'it read on without being read');
});

test('the destination of a denied connection sees nothing', async (t) => {
  const { proxy, server } = await world(t, () => undefined, { rules: rulesFor(['allowed.test']) });
  const denied = REQUEST.replace('allowed', 'denied');
  assert.equal(await exchangeTcp(proxy.port, denied), 'ECONNRESET');
  assert.equal(server.sockets.size, 0);
  assert.deepEqual(
    proxy.refusals.map(({ name, reason }) => [name, reason]),
    [['denied.test', 'policy']],
  );
});

test('a server may speak first', async (t) => {
  const { proxy } = await world(t, (socket) => socket.end('220 hello'), {}, { silenceMs: 1 });
  assert.equal(await exchangeTcp(proxy.port, '', { end: false }), '220 hello');
});

test('a client that says nothing and is done still hears the server', async (t) => {
  const { proxy } = await world(t, (socket) => socket.end('220 hello'), {}, PATIENT);
  assert.equal(await exchangeTcp(proxy.port, ''), '220 hello');
});

test('silence at first is no way past a rule that denies a name', async (t) => {
  const rules = rulesFor('all', { denied: ['denied.test'] });
  const { proxy, server } = await world(
    t,
    (socket) => socket.write('220 hello'),
    { rules },
    { silenceMs: 1 },
  );
  const client = connect({ host: '127.0.0.1', port: proxy.port });
  t.after(() => client.destroy());
  await once(client, 'data');
  client.on('error', () => undefined);
  connectTls({ socket: client, servername: 'denied.test' }).on('error', () => undefined);
  await once(client, 'close');
  assert.equal(server.received(), '');
  assert.deepEqual(proxy.refusals[0]?.reason, 'policy');
});

test('a sandbox has as many connections as it may, and gets one back when one ends', async (t) => {
  const { proxy, server } = await world(t, (socket) => socket.on('end', () => socket.end()), {
    maxConnections: 2,
  });
  const open = async () => {
    const client = connect({ host: '127.0.0.1', port: proxy.port }).on('error', () => undefined);
    t.after(() => client.destroy());
    client.write(REQUEST);
    return client;
  };
  const [first] = [await open(), await open()];
  await waitUntil(() => server.sockets.size === 2);
  assert.equal(await exchangeTcp(proxy.port, REQUEST), 'ECONNRESET');
  assert.equal(proxy.refusals[0]?.reason, 'too_many_connections');
  first.destroy();
  await waitUntil(async () => {
    await open();
    return server.sockets.size === 3;
  });
});

test('a client that never finishes its first words is cut off', async (t) => {
  const { proxy, server } = await world(t, () => undefined, {}, { firstFlightMs: 1, silenceMs: 50 });
  assert.equal(await exchangeTcp(proxy.port, 'GET / HT', { end: false }), 'ECONNRESET');
  assert.equal(server.sockets.size, 0);
});

test('strict rules need a name in each request: plain requests are read, and other protocols are refused', async (t) => {
  const rules = rulesFor(['allowed.test'], { isStrict: true });
  const intercept: SandboxEgress['intercept'] = ({ client }) => client.end('read');
  const { proxy, server } = await world(t, () => undefined, { rules, intercept });
  assert.equal(await exchangeTcp(proxy.port, REQUEST), 'read');
  assert.equal(await exchangeTcp(proxy.port, 'SSH-2.0-client\r\n', { end: false }), 'ECONNRESET');
  assert.equal(proxy.refusals[0]?.reason, 'policy');
  assert.equal(server.sockets.size, 0);
  const client = connectTls({ host: '127.0.0.1', port: proxy.port, servername: 'allowed.test' });
  client.on('error', () => undefined);
  t.after(() => client.destroy());
  await waitUntil(() => client.destroyed);
  assert.equal(proxy.refusals[1]?.reason, 'not_readable');
  assert.equal(server.sockets.size, 0);
});

test('where plain HTTP is read, it is read at every port, HTTP/2 is refused and what is no HTTP passes', async (t) => {
  const intercept: SandboxEgress['intercept'] = ({ client }) => client.end('read');
  const plain = { readsPlainHttp: true, intercept };
  const { proxy, server } = await world(t, (socket) => socket.on('end', () => socket.end('passed')), plain);
  assert.equal(await exchangeTcp(proxy.port, REQUEST), 'read');
  assert.equal(await exchangeTcp(proxy.port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 'ECONNRESET');
  assert.equal(proxy.refusals[0]?.reason, 'not_readable');
  assert.equal(server.sockets.size, 0);
  assert.equal(await exchangeTcp(proxy.port, 'SSH-2.0-client\r\n'), 'passed');
});

test('connections of a removed sandbox are closed', async (t) => {
  const { proxy, server } = await world(t, () => undefined);
  const client = connect({ host: '127.0.0.1', port: proxy.port });
  client.write(REQUEST);
  await waitUntil(() => server.received() === REQUEST);
  proxy.proxy.forget('127.0.0.1');
  await assert.rejects(
    once(client, 'close').then(() => Promise.reject(new Error('closed'))),
    /closed|ECONNRESET/,
  );
  await waitUntil(() => [...server.sockets].every((socket) => socket.destroyed || socket.readableEnded));
});

async function world(
  t: { after: (undo: () => Promise<void>) => void },
  onConnection: (socket: Socket) => void,
  egress: Partial<SandboxEgress> = {},
  limits: Partial<ProxyLimits> = {},
): Promise<{ proxy: TestProxy; server: Awaited<ReturnType<typeof listenTcp>> }> {
  const server = await listenTcp(onConnection);
  const proxy = await startProxy(
    { address: '127.0.0.1', port: server.port },
    { rules: rulesFor('all'), ...egress },
    { ...PATIENT, ...limits },
  );
  t.after(async () => {
    await proxy[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });
  return { proxy, server };
}
