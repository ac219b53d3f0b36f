import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import pino from 'pino';
import { waitUntil } from '@svc/contract/testing';
import { makeFolder, startTestServer } from '../../testing/test-server.ts';
import { createHttpServer } from './create-http-server.ts';
import { Guard } from './guard.ts';
import { DEFAULT_LIMITS } from './http-limits.ts';

const RPC = '/api/v1/rpc';

/** A connection, with everything that was read from it so far. */
async function dial(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await once(socket, 'connect');
  let heard = '';
  let failure: Error | undefined;
  socket.on('data', (data: Buffer) => (heard += data.toString()));
  socket.on('error', (error) => (failure = error));
  return { socket, heard: () => heard, failure: () => failure };
}

function head(path: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
}

async function sendAll(socket: Socket, text: string): Promise<void> {
  await new Promise((resolve) => socket.write(text, resolve));
}

test('a body over the limit is 413 to a sender that is still busy, on every surface', async (t) => {
  const server = await startTestServer(t, { limits: { ...DEFAULT_LIMITS, maxBodyBytes: 1000 } });
  for (const path of [RPC, '/v1/sandboxes']) {
    const { socket, heard, failure } = await dial(server.url);
    await sendAll(socket, head(path, 40_000_000) + 'x'.repeat(500_000));
    await waitUntil(() => heard().includes('\r\n\r\n'));
    assert.match(heard(), /^HTTP\/1\.1 413 /);
    for (let sent = 500_000; sent < 40_000_000; sent += 500_000) await sendAll(socket, 'x'.repeat(500_000));
    // The connection is still usable.
    await sendAll(socket, 'GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await waitUntil(() => /HTTP\/1\.1 (200|503) /.test(heard().slice(20)) || failure() !== undefined);
    assert.equal(failure(), undefined, path);
    socket.destroy();
  }
});

test('a body whose length nothing announces is 413 too when it is over the limit', async (t) => {
  const server = await startTestServer(t, { limits: { ...DEFAULT_LIMITS, maxBodyBytes: 1000 } });
  const piece = `${(500_000).toString(16)}\r\n${'x'.repeat(500_000)}\r\n`;
  for (const path of [RPC, '/mcp', '/v1/volumes', '/v1/nothing']) {
    const { socket, heard, failure } = await dial(server.url);
    const chunked = head(path, 0).replace('Content-Length: 0', 'Transfer-Encoding: chunked');
    await sendAll(socket, chunked);
    // More than the buffers of both sides, so that it is sent only if it is read.
    for (let count = 0; count < 80 && failure() === undefined; count++) await sendAll(socket, piece);
    await sendAll(socket, '0\r\n\r\nGET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await waitUntil(() => heard().lastIndexOf('HTTP/1.1 ') > 0 || failure() !== undefined);
    assert.equal(failure(), undefined, path);
    assert.match(heard(), path === '/v1/nothing' ? /^HTTP\/1\.1 404 / : /^HTTP\/1\.1 413 /, path);
    socket.destroy();
  }
});

test('a client that disconnects while it sends its request is no error of the server', async (t) => {
  const lines: string[] = [];
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  const logger = pino({ level: 'debug' }, sink);
  const folder = await makeFolder(t);
  const server = await startTestServer(t, { folder, logger });
  for (const path of [RPC, '/v1/sandboxes', '/v1/volumes/default/files/write', '/mcp']) {
    const { socket } = await dial(server.url);
    await sendAll(socket, `${head(path, 1000)}{"half"`);
    socket.destroy();
  }
  await server.close();
  const errors = lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50);
  assert.deepEqual(errors, []);
});

test('a request on a connection that is open while the server ends is refused in the words of its surface', async () => {
  const server = createHttpServer({
    guard: new Guard({ host: '127.0.0.1', allowedHosts: [], corsOrigins: [] }),
    limits: DEFAULT_LIMITS,
    logger: pino({ level: 'silent' }),
    tracer: null,
  });
  const ended = Promise.withResolvers<void>();
  let begun = 0;
  server.get('/v1/slow', async () => {
    begun += 1;
    await ended.promise;
    return 'done';
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const paths = ['/v1/sandboxes', RPC];
  const connections = await Promise.all(paths.map(async (path) => ({ path, ...(await dial(url)) })));
  for (const { socket } of connections) await sendAll(socket, request('/v1/slow'));
  await waitUntil(() => begun === 2);
  const closed = server.close();
  await waitUntil(() => !server.server.listening);
  for (const { path, socket } of connections) await sendAll(socket, request(path));
  ended.resolve();
  await closed;
  await waitUntil(() => connections.every(({ socket }) => socket.destroyed));
  const [rest, rpc] = connections.map(({ heard }) => heard());
  assert.match(
    rest ?? '',
    /^HTTP\/1\.1 200 .*HTTP\/1\.1 503 .*"error":\{"code":"unavailable","message":"The/s,
  );
  assert.match(rpc ?? '', /^HTTP\/1\.1 200 .*HTTP\/1\.1 503 .*"jsonrpc":"2\.0".*The server is ending/s);
});
