import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { startWithPeople } from '../../packages/server/src/testing/people.ts';
import type { TestServerOptions } from '../../packages/server/src/testing/test-server.ts';
import { groupOfAddress } from '../../packages/server/src/transports/http/connection-limit.ts';
import { DEFAULT_LIMITS } from '../../packages/server/src/transports/http/http-limits.ts';

/** Two organizations on one server: what one holds, over real connections, must not be missed by the other. */
async function open(t: TestContext, options: TestServerOptions = {}) {
  const people = await startWithPeople(t, options);
  const owner = await people.person('owner');
  await people.organization('attacker', { owner });
  await people.organization('victim', { owner });
  await waitUntil(() => people.server.health.current.isHealthy);
  const attacker = await people.apiKey('attacker');
  const victim = await people.apiKey('victim');
  return { ...people, attacker, victim };
}

function raw(t: TestContext, url: string, localAddress: string, text: string): Socket {
  const { port } = new URL(url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.write(text);
  return socket;
}

const ping = (namespace: string) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'sandbox.metrics.get',
  params: { namespace },
});
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

const MAX_CONNECTIONS = 24;
/** A body that does not come. The answer says that the server has begun with the request. */
const UNFINISHED = [
  'POST /api/v1/rpc HTTP/1.1',
  'Host: localhost',
  'Content-Type: application/json',
  'Expect: 100-continue',
  'Content-Length: 99',
  '\r\n',
].join('\r\n');

/** A request of a known client on each surface. */
function requestsOf(key: string): readonly string[] {
  const call = JSON.stringify(ping('victim'));
  const head = `HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n`;
  const json = (body: string) =>
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  return [
    `GET /v1/me/org ${head}\r\n`,
    `POST /api/v1/rpc ${head}${json(call)}`,
    `POST /mcp ${head}Accept: application/json, text/event-stream\r\n${json('{}')}`,
  ];
}

/** Empty when the connection was closed instead. */
async function answerTo(socket: Socket, text: string): Promise<string> {
  if (socket.destroyed) return '';
  const closed = once(socket, 'close').then(() => '');
  const answered = once(socket, 'data').then(([chunk]) => (chunk as Buffer).toString());
  socket.write(text);
  return await Promise.race([answered, closed]);
}

test('unfinished requests without a key reset no connection of others, from one address or from a whole IPv6 network', async (t) => {
  const limits = { ...DEFAULT_LIMITS, maxConnections: MAX_CONNECTIONS };
  const { server, victim } = await open(t, { limits });
  // They wait for their next request, at the address that the flood comes from: only their key keeps them apart from it.
  const kept = [];
  for (const text of requestsOf(victim)) {
    const socket = raw(t, server.url, '127.0.0.1', '');
    const before = await answerTo(socket, text);
    kept.push({ socket, text, before: before.split('\r\n')[0] ?? '' });
  }
  // Bodies that do not come: they make room last, after connections that wait for their next request. Each is waited for,
  // because one of which nothing is known yet would make room before all of these.
  for (let count = 0; count < 2 * MAX_CONNECTIONS; count++) {
    const begun = await answerTo(raw(t, server.url, '127.0.0.1', ''), UNFINISHED);
    assert.match(begun, /^HTTP\/1.1 100/);
  }
  for (let round = 0; round < 5; round++) {
    const { status } = await server.post(ping('victim'), { headers: bearer(victim) });
    assert.equal(status, 200);
  }
  for (const { socket, text, before } of kept) {
    const again = await answerTo(socket, text);
    assert.equal(again.split('\r\n')[0], before, `the connection of a known client was taken: ${text}`);
  }
  assert.equal(groupOfAddress('2001:db8:1:2:3:4:5:6'), groupOfAddress('2001:db8:1:2::9'));
  assert.notEqual(groupOfAddress('2001:db8:1:2::9'), groupOfAddress('2001:db8:1:3::9'));
  assert.equal(groupOfAddress('::ffff:192.0.2.7'), '192.0.2.7');
});

test('held calls of one organization leave room for another, and are refused with Retry-After', async (t) => {
  const { server, attacker, victim } = await open(t, { maxConcurrentCalls: 8 });
  const start = (name: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'sandbox.start',
    params: { sandbox: name, namespace: 'attacker', config: { image: 'slow' } },
  });
  const held = Array.from({ length: 4 }, (_, index) =>
    server.post(start(`held-${index}`), { headers: bearer(attacker) }),
  );
  await waitUntil(() => server.orchestrator.fetching > 0, 'the first held call');
  await waitUntil(
    async () => (await server.post(ping('attacker'), { headers: bearer(attacker) })).status === 429,
    'the share',
  );
  const over = await server.post(ping('attacker'), { headers: bearer(attacker) });
  assert.deepEqual([over.status, over.headers.get('retry-after')], [429, '1']);
  const rest = await server.rest('GET', '/sandboxes', { key: attacker });
  assert.deepEqual(
    [rest.status, rest.headers.get('retry-after')],
    [429, '1'],
    'the share holds on every surface',
  );
  assert.equal((await server.post(ping('victim'), { headers: bearer(victim) })).status, 200);
  assert.equal((await server.rest('GET', '/sandboxes', { key: victim })).status, 200);
  server.orchestrator.finishFetching();
  await Promise.all(held);
  await waitUntil(
    async () => (await server.post(ping('attacker'), { headers: bearer(attacker) })).status === 200,
  );
});

test('1,001 MCP sessions of one organization end none of another', async (t) => {
  const { server, attacker, victim } = await open(t);
  const initialize = async (key: string) => {
    const answer = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: {
        ...bearer(key),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-06-18',
          capabilities: {},
          clientInfo: { name: 'test', version: '1' },
        },
      }),
    });
    await answer.text();
    assert.equal(answer.status, 200);
    return answer.headers.get('mcp-session-id') ?? assert.fail();
  };
  const session = await initialize(victim);
  for (let count = 0; count < 1001; count++) await initialize(attacker);
  const answer = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      ...bearer(victim),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' }),
  });
  assert.equal(answer.status, 200, await answer.text());
});

test('--rate-limit counts one organization on REST, JSON-RPC, each call of a batch, and MCP together', async (t) => {
  const { server, attacker, victim } = await open(t, { requestsPerMinute: 6 });
  assert.equal((await server.rest('GET', '/sandboxes', { key: attacker })).status, 200);
  const batch = [ping('attacker'), ping('attacker'), ping('attacker')];
  assert.equal((await server.post(batch, { headers: bearer(attacker) })).status, 200);
  const { headers } = await server.post(ping('attacker'), { headers: bearer(attacker) });
  assert.equal(headers.get('ratelimit-remaining'), '1');
  const mcp = () =>
    fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: { ...bearer(attacker), 'content-type': 'application/json' },
      body: '{}',
    });
  await (await mcp()).text();
  const over = await mcp();
  assert.equal(over.status, 429, await over.text());
  assert.ok(Number(over.headers.get('retry-after')) > 0);
  assert.equal((await server.post(ping('attacker'), { headers: bearer(attacker) })).status, 429);
  assert.equal((await server.post(ping('victim'), { headers: bearer(victim) })).status, 200);
});
