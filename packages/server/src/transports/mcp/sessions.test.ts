import { FairLimit } from '../../access/fair-limit.ts';
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import Fastify from 'fastify';
import { pino } from 'pino';
import { authenticateAsDeveloper } from '../../access/authenticate.ts';
import { Dispatch, type Handlers } from '../../dispatch/dispatch.ts';
import { signKey } from '../../access/signed-keys.ts';
import { startTestServer } from '../../testing/test-server.ts';
import type { SessionLimits } from './mcp-sessions.ts';
import { registerMcp } from './register-mcp.ts';
import type { Workbench } from './toolbox/tool-context.ts';
import { connectClient } from '../../testing/mcp-client.ts';
import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { TOOL_LIST } from './tools.ts';

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
};
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

test('without a key nothing is answered but that one is required', async (t) => {
  const { url } = await startTestServer(t, { signingKey: randomBytes(32) });
  for (const method of ['POST', 'GET', 'DELETE']) {
    const body = method === 'POST' ? JSON.stringify(INITIALIZE) : null;
    const response = await fetch(`${url}/mcp`, { method, headers: HEADERS, body });
    assert.equal(response.status, 401);
    assert.equal(response.headers.get('www-authenticate'), 'Bearer');
    const { error } = (await response.json()) as { error: { code: number; message: string } };
    assert.deepEqual([error.code, error.message], [-32_002, 'Authentication required']);
  }
});

test('a session cannot be used with a key of another reach', async (t) => {
  const signingKey = randomBytes(32);
  const { url } = await startTestServer(t, { signingKey });
  const [mine, other] = await Promise.all(
    ['mine', 'other'].map((namespace) =>
      signKey(signingKey, { namespace, createdAt: new Date(), expiresAt: null }),
    ),
  );
  const { transport } = await connectClient(t, url, { authorization: `Bearer ${mine}` });
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' });
  const headers = { ...HEADERS, 'mcp-session-id': transport.sessionId ?? '' };
  const statuses = [];
  for (const key of [mine, other]) {
    const authorization = `Bearer ${key}`;
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { ...headers, authorization },
      body: ping,
    });
    await response.text();
    statuses.push(response.status);
  }
  assert.deepEqual(statuses, [200, 404]);
});

test('a session that the client has ended, or that never was, is not found', async (t) => {
  const { url } = await startTestServer(t);
  const { client, transport } = await connectClient(t, url);
  const sessionId = transport.sessionId ?? '';
  await transport.terminateSession();
  await client.close();
  for (const id of [sessionId, 'never']) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' });
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { ...HEADERS, 'mcp-session-id': id },
      body,
    });
    assert.equal(response.status, 404);
  }
});

test('invalid messages, sessions and methods are refused, and the server keeps running', async (t) => {
  const { url } = await startTestServer(t);
  const post = async (body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/mcp`, { method: 'POST', headers: { ...HEADERS, ...headers }, body });
    await response.text();
    return response.status;
  };
  assert.equal(await post('{'), 400);
  assert.equal(await post('null'), 400);
  assert.equal(await post('[]'), 400);
  assert.equal(await post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'), 400);
  assert.equal(await post(JSON.stringify(INITIALIZE), { accept: 'text/plain' }), 406);
  assert.equal(await post(JSON.stringify(INITIALIZE), { 'content-type': 'text/plain' }), 415);
  assert.equal((await fetch(`${url}/mcp`, { method: 'PUT', headers: HEADERS, body: '{}' })).status, 405);
  assert.equal((await fetch(`${url}/mcp`)).status, 406);
  const { client } = await connectClient(t, url);
  assert.equal((await client.listTools()).tools.length, TOOL_LIST.length);
});

test('a page of another origin gets nothing', async (t) => {
  const { url } = await startTestServer(t);
  const headers = { ...HEADERS, origin: 'https://evil.example' };
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body: JSON.stringify(INITIALIZE) });
  assert.equal(response.status, 403);
});

test('an idle session expires, and one with an open stream does not', async (t) => {
  // The test advances the clock, so that no session is idle before.
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const { url, sessions, streams } = await startBare(t, { maxSessions: 10, idleMs: 200 });
  await initialize(url);
  // The official client holds a stream open.
  const { client } = await connectClient(t, url);
  await waitUntil(() => streams() === 1, 'its stream');
  await client.ping();
  assert.equal(sessions.size, 2);
  t.mock.timers.tick(1000);
  await waitUntil(() => sessions.size === 1, 'the end of the idle session');
  await client.ping();
});

test('beyond the limit the session that was idle longest gives way', async (t) => {
  const { url, sessions } = await startBare(t, { maxSessions: 3, idleMs: 60_000 });
  const ids = [];
  for (let count = 0; count < 5; count += 1) ids.push(await initialize(url));
  await waitUntil(() => sessions.size === 3);
  assert.deepEqual(await Promise.all(ids.map((id) => ping(url, id))), [404, 404, 200, 200, 200]);
});

test('a server with open streams closes at once', async (t) => {
  const server = await startTestServer(t);
  await connectClient(t, server.url);
  // From here on no time passes, so that a wait by a timer would never end.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await server.close();
});

test('each revision that the SDK knows is spoken when a client asks for it, the newest otherwise', async (t) => {
  const { url } = await startTestServer(t);
  for (const asked of [...SUPPORTED_PROTOCOL_VERSIONS, '2099-01-01']) {
    const params = { ...INITIALIZE.params, protocolVersion: asked };
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify({ ...INITIALIZE, params }),
    });
    const text = await response.text();
    const { result } = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text) as {
      result: { protocolVersion: string };
    };
    const spoken = SUPPORTED_PROTOCOL_VERSIONS.includes(asked) ? asked : LATEST_PROTOCOL_VERSION;
    assert.equal(result.protocolVersion, spoken);
    const list = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        ...HEADERS,
        'mcp-session-id': response.headers.get('mcp-session-id') ?? '',
        'mcp-protocol-version': spoken,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' }),
    });
    assert.match(await list.text(), /sandbox_run_code/, asked);
  }
});

async function startBare(t: TestContext, sessionLimits: SessionLimits) {
  const server = Fastify({ forceCloseConnections: true });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
  // These tests call no operation.
  const dispatch = new Dispatch(
    {} as Handlers,
    () => undefined,
    () => Promise.resolve(),
  );
  const sessions = registerMcp(server, {
    dispatch,
    workbench: {} as Workbench,
    authenticate: authenticateAsDeveloper,
    logger: pino({ level: 'silent' }),
    calls: new FairLimit(10),
    rateLimiter: null,
    sessionLimits,
  });
  let streams = 0;
  server.addHook('onRequest', (request, _reply, done) => {
    if (request.method === 'GET') streams += 1;
    done();
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => server.close());
  return { url, sessions, streams: () => streams };
}

async function initialize(url: string): Promise<string> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify(INITIALIZE),
  });
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

async function ping(url: string, id: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' });
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { ...HEADERS, 'mcp-session-id': id },
    body,
  });
  await response.text();
  return response.status;
}
