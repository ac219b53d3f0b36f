import assert from 'node:assert/strict';
import { once, type EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { pino } from 'pino';
import { EngineClient } from '../client/engine-client.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { createHttpServer, type Routes } from './http-server.ts';
import { createRelay } from './relay.ts';
import { createRoutes, type Daemon } from './routes.ts';
import { sendProgress } from './streams.ts';

/** A server whose every request must be refused before anything of the engine is asked. */
async function serve(t: TestContext, logger = pino({ level: 'silent' })): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-http-'));
  const sandboxes = { get: () => ({}) };
  const daemon = { kit: {}, sandboxes, logger } as unknown as Daemon;
  const relay = createRelay({ get: () => assert.fail('looked up') } as unknown as Sandboxes);
  const server = createHttpServer(createRoutes(daemon), relay, { logger: daemon.logger });
  const path = join(folder, 'engine.sock');
  server.listen(path);
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });
  return path;
}

async function ask(socketPath: string, method: string, path: string, body?: unknown) {
  const asked = request({ socketPath, method, path, agent: false });
  asked.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await once(asked, 'response');
  const chunks = await Array.fromAsync(response as AsyncIterable<Buffer>);
  const answer = JSON.parse(Buffer.concat(chunks).toString()) as { error: { code: string; message: string } };
  return { status: (response as { statusCode: number }).statusCode, ...answer.error };
}

test('each call is in a debug log, without its query, and the questions of watchdogs are not', async (t) => {
  const lines: string[] = [];
  const logged = Promise.withResolvers<void>();
  const write = (line: string) => (lines.push(line), logged.resolve());
  const socket = await serve(t, pino({ level: 'debug' }, { write }));
  await ask(socket, 'GET', '/pulse').catch(() => undefined);
  await ask(socket, 'GET', '/nothing?token=secret');
  await logged.promise;
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /"method":"GET","path":"\/nothing","status":404,.*"msg":"call"/);
});

test('a malformed request is an error of the caller, not of the engine', async (t) => {
  const socket = await serve(t);
  const spec = { image: { type: 'oci', reference: 'x' } };
  const cases: [method: string, path: string, body?: unknown][] = [
    ['GET', '/sandboxes/%zz'],
    ['DELETE', '/volumes/%c3%28'],
    ['GET', '//'],
    ['GET', '/sandboxes/one/logs?tail=many'],
    ['POST', '/sandboxes/one/stop', { graceMs: 1e300 }],
    ['POST', '/sandboxes/one/stop', { graceMs: -1 }],
    ['POST', '/sandboxes/one/stop', []],
    ['POST', '/sandboxes', { spec, registryAuth: 'me:secret' }],
    ['POST', '/sandboxes', { spec, volumes: { data: 7 } }],
    ['POST', '/sandboxes', { spec, __proto__: null, bogus: 1 }],
    ['POST', '/sandboxes', { spec, hostFolder: '..' }],
    ['POST', '/sandboxes', { spec, hostFolder: 'mine/../theirs' }],
  ];
  for (const [method, path, body] of cases) {
    const { status, code, message } = await ask(socket, method, path, body);
    assert.deepEqual([status, code], [400, 'invalid_request'], `${method} ${path}: ${message}`);
    assert.ok(!message.includes('secret'));
  }
});

/** A server with these routes alone. */
async function serveRoutes(t: TestContext, routes: Routes, logger = pino({ level: 'silent' })) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-http-'));
  const server = createHttpServer(routes, async () => {}, { logger });
  const socketPath = join(folder, 'engine.sock');
  server.listen(socketPath);
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });
  return { server, socketPath };
}

test('a caller that goes away while it is shown progress is no failure of the engine', async (t) => {
  const lines: string[] = [];
  const ended = Promise.withResolvers<void>();
  const routes: Routes = {
    'POST /images/pull': async (call) => {
      await sendProgress(call, async (onProgress) => {
        onProgress({ step: 'resolving', reference: 'x' });
        await once(call.signal, 'abort');
        throw call.signal.reason;
      });
      ended.resolve();
    },
  };
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const { socketPath } = await serveRoutes(t, routes, logger);
  const asked = request({ socketPath, method: 'POST', path: '/images/pull', agent: false }).end();
  const [response] = await once(asked, 'response');
  await once(response as EventEmitter, 'data');
  asked.on('error', () => undefined).destroy();
  await ended.promise;
  assert.deepEqual(
    lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50),
    [],
  );
});

test('a call with progress leaves its connection to the next one', async (t) => {
  const routes: Routes = {
    'POST /images/pull': async (call) => {
      await call.json();
      return await sendProgress(call, async (onProgress) => {
        onProgress({ step: 'resolving', reference: 'x' });
        return await Promise.resolve({ id: 'sha256:0' });
      });
    },
  };
  const { server, socketPath } = await serveRoutes(t, routes);
  let connections = 0;
  server.on('connection', () => (connections += 1));
  const client = new EngineClient({ socketPath });
  for (let call = 0; call < 3; call++) {
    const steps: string[] = [];
    const image = await client.images.pullImage({ reference: 'x' }, ({ step }) => steps.push(step));
    assert.deepEqual([image, steps], [{ id: 'sha256:0' }, ['resolving']]);
  }
  assert.equal(connections, 1);
});

test('an upgrade with a malformed path is refused the same way', async (t) => {
  const socket = connect(await serve(t));
  t.after(() => socket.destroy());
  socket.write(
    'GET /sandboxes/%zz/channel HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: svc-channel\r\n\r\n',
  );
  const [head] = await once(socket, 'data');
  assert.match(String(head), /^HTTP\/1\.1 400 /);
});

test('the connection of an upload that was refused half-way ends, without harm to the server', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const routes: Routes = {
    'PUT /volumes/:id/content': async ({ request: upload }) => {
      for await (const _ of upload) throw new PlatformError('disk_full', 'the volume is full');
      return {};
    },
  };
  const { server, socketPath } = await serveRoutes(t, routes);
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = connect(socketPath);
  t.after(() => socket.destroy());
  socket.write('PUT /volumes/v/content HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nhalf');
  const [head] = await once(socket, 'data');
  assert.match(String(head), /^HTTP\/1\.1 507 /);
  const [near] = await accepted;
  assert.equal(near.destroyed, false, 'the caller has time to read the answer');
  t.mock.timers.tick(5000);
  assert.equal(near.destroyed, true);
});
