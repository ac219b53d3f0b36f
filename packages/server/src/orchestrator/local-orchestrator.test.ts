import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PlatformError, type SandboxSpec } from '@svc/contract';
import { waitUntil } from '@svc/contract/testing';
import { EngineClient } from '@svc/engine/client';
import { LocalOrchestrator } from './local-orchestrator.ts';

interface Refusal {
  readonly status: number;
  readonly error: object;
}

const STOPPING: Refusal = {
  status: 409,
  error: { code: 'sandbox_not_running', message: 'it is stopping', details: { state: 'stopping' } },
};
const GONE: Refusal = {
  status: 404,
  error: { code: 'sandbox_not_found', message: 'there is no such sandbox' },
};

/** An engine that refuses everything; `answer` gets the number of earlier calls. */
async function refusingEngine(
  t: TestContext,
  answer: (isUpgrade: boolean, before: number) => Refusal,
): Promise<EngineClient> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-refusing-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  let asked = 0;
  const server = createServer((_request, response) => {
    const { status, error } = answer(false, asked++);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  });
  server.on('upgrade', (_request, socket) => {
    const { status, error } = answer(true, asked++);
    const body = JSON.stringify({ error });
    socket.end(
      `HTTP/1.1 ${status} No\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  });
  server.listen(join(folder, 'engine.sock'));
  await once(server, 'listening');
  t.after(() => server.close());
  const client = new EngineClient({ socketPath: join(folder, 'engine.sock') });
  t.after(() => client.close());
  return client;
}

test('opening a channel while the sandbox is removed answers not found, not stopping', async (t) => {
  const engine = await refusingEngine(t, (_isUpgrade, before) => (before === 0 ? STOPPING : GONE));
  const orchestrator = new LocalOrchestrator(engine);
  await assert.rejects(orchestrator.openStream('box', AbortSignal.timeout(60_000)), (error) =>
    PlatformError.is(error, 'sandbox_not_found'),
  );
});

test('a caller that gives up while a sandbox ends gets the error that it ends', async (t) => {
  const deadline = new AbortController();
  const engine = await refusingEngine(t, (isUpgrade, before) => {
    if (before > 4) deadline.abort();
    return isUpgrade ? STOPPING : GONE;
  });
  const opening = new LocalOrchestrator(engine).openStream('box', deadline.signal);
  await assert.rejects(opening, (error) => PlatformError.is(error, 'sandbox_not_running'));
});

/** An engine that counts what it is asked, and refuses the image `no`. */
async function countingEngine(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-counting-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const asked: string[] = [];
  const listeners: ServerResponse[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await Array.fromAsync(request)).toString();
    const { spec } = JSON.parse(body) as { spec: SandboxSpec };
    asked.push(spec.image.reference);
    const error = { code: 'invalid_sandbox_config', message: 'no' };
    const isRefused = spec.image.reference === 'no';
    response.writeHead(isRefused ? 400 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isRefused ? { error } : {}));
  };
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/events')) {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
      listeners.push(response);
    } else {
      void answer(request, response);
    }
  });
  server.listen(join(folder, 'engine.sock'));
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = new EngineClient({ socketPath: join(folder, 'engine.sock') });
  t.after(() => client.close());
  return { client, asked, listeners };
}

test('a supported check is asked once for as long as the stream of changes lasts', async (t) => {
  const { client, asked, listeners } = await countingEngine(t);
  const orchestrator = new LocalOrchestrator(client);
  const check = (reference: string, more: Partial<SandboxSpec> = {}) =>
    orchestrator.check({ spec: { image: { type: 'oci', reference }, ...more } }, AbortSignal.timeout(60_000));

  await check('a');
  await check('a');
  assert.deepEqual(asked.splice(0), ['a', 'a'], 'without the stream of changes the end would not be noticed');

  const heard = Array.fromAsync(orchestrator.changes(AbortSignal.timeout(60_000)));
  const ended = assert.rejects(heard, { code: 'orchestrator_unreachable' });
  await waitUntil(() => listeners.length === 1, { what: 'the stream of changes is open' });
  await check('a');
  await check('a');
  await check('a', { env: [{ key: 'NAME', value: 'value' }] });
  assert.deepEqual(asked.splice(0), ['a', 'a'], 'once for each question');

  await assert.rejects(check('no'), { code: 'invalid_sandbox_config' });
  await assert.rejects(check('no'), { code: 'invalid_sandbox_config' });
  assert.deepEqual(asked.splice(0), ['no', 'no'], 'a refusal is given each time');

  const mounts: SandboxSpec['mounts'] = [{ type: 'bind', host: '/srv', guest: '/srv' }];
  await check('a', { mounts });
  await check('a', { mounts });
  assert.deepEqual(asked.splice(0), ['a', 'a'], 'a folder of the host can be gone');

  listeners[0]?.end();
  await ended;
  await check('a');
  assert.deepEqual(asked.splice(0), ['a'], 'another engine may not be able to');
});
