import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startWithPeople } from '../testing/people.ts';
import { connectClient } from '../testing/mcp-client.ts';

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

async function startAcme(t: TestContext) {
  const people = await startWithPeople(t);
  const owner = await people.person('owner');
  await people.organization('acme', { owner });
  await people.organization('other', {});
  const { server } = people;
  const metrics = async (key: string, namespace = 'acme') => {
    const body = { jsonrpc: '2.0', method: 'sandbox.metrics.get', params: { namespace }, id: 1 };
    return (await server.post(body, bearer(key))).status;
  };
  const mcp = async (key: string) => {
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    };
    const { headers } = bearer(key);
    const accept = 'application/json, text/event-stream';
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, accept, 'content-type': 'application/json' },
      body: JSON.stringify(initialize),
    });
    await response.text();
    return response.status;
  };
  return { ...people, owner, metrics, mcp };
}

test('an API key runs sandboxes of its own namespace over JSON-RPC, and no others', async (t) => {
  const { server, apiKey, metrics } = await startAcme(t);
  const key = await apiKey('acme');
  const start = { sandbox: 'a', namespace: 'acme', config: { image: 'x' } };
  const started = await server.call('sandbox.start', start, bearer(key));
  assert.equal(started.result, 'Sandbox a started successfully');
  assert.equal(await metrics(key), 200);
  assert.equal(await metrics(key, 'other'), 403);
  const other = await server.call('sandbox.stop', { sandbox: 'a', namespace: 'other' }, bearer(key));
  assert.equal(other.error?.message, "Access denied to namespace 'other'");
  assert.equal(await metrics(await apiKey('other')), 403);
  assert.equal((await fetch(`${server.url}/metrics`, bearer(key))).status, 403);
});

test('an API key runs sandboxes of its own namespace over MCP, and no others', async (t) => {
  const { server, apiKey } = await startAcme(t);
  const { client } = await connectClient(t, server.url, bearer(await apiKey('acme')).headers);
  const start = async (namespace: string) => {
    const config = { image: 'x' };
    const call = { name: 'sandbox_start', arguments: { sandbox: 'a', namespace, config } };
    return await client.callTool(call);
  };
  const own = await start('acme');
  assert.equal(own.isError ?? false, false, JSON.stringify(own));
  const other = await start('other');
  assert.equal(other.isError, true);
  assert.match(JSON.stringify(other.content), /Access denied to namespace 'other'/);
});

test('a key that was revoked, has expired, or is of a deleted organization is 401 on every surface', async (t) => {
  const { server, owner, apiKey, metrics, mcp } = await startAcme(t);
  const expired = await apiKey('acme', '2026-01-01T00:00:00.000Z');
  const create = { key: owner.key, body: { name: 'x' } };
  const { body: revoked } = await server.rest('POST', '/orgs/acme/api-keys', create);
  const left = await apiKey('acme');
  const statuses = async (key: string) => [
    (await server.rest('GET', '/me/org', { key })).status,
    await metrics(key),
    await mcp(key),
  ];
  assert.deepEqual(await statuses(revoked.key), [200, 200, 200]);
  await server.rest('DELETE', `/orgs/acme/api-keys/${revoked.id}`, { key: owner.key });
  assert.deepEqual(await statuses(revoked.key), [401, 401, 401]);
  assert.deepEqual(await statuses(expired), [401, 401, 401]);
  assert.deepEqual(await statuses(left), [200, 200, 200]);
  await server.rest('DELETE', '/orgs/acme', { key: owner.key, body: { confirm: 'acme' } });
  assert.deepEqual(await statuses(left), [401, 401, 401]);
});

test('a personal access token is no key of the self-hosted surface', async (t) => {
  const { owner, metrics, mcp } = await startAcme(t);
  assert.equal(await metrics(owner.key), 401);
  assert.equal(await mcp(owner.key), 401);
});

test('an MCP session ends with the key that it was opened with', async (t) => {
  const { server, owner } = await startAcme(t);
  const create = { key: owner.key, body: { name: 'x' } };
  const { body: made } = await server.rest('POST', '/orgs/acme/api-keys', create);
  const { client } = await connectClient(t, server.url, bearer(made.key).headers);
  await client.ping();
  await server.rest('DELETE', `/orgs/acme/api-keys/${made.id}`, { key: owner.key });
  await assert.rejects(client.ping());
});
