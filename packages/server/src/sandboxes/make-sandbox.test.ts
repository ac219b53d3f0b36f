import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { signKey } from '../access/signed-keys.ts';
import { createApiKey } from '../store/api-keys-and-tokens.ts';
import { ensureOrganization } from '../store/organizations.ts';
import { listSandboxes } from '../store/sandboxes.ts';
import { connectClient, textOf } from '../testing/mcp-client.ts';
import { startTestServer, type TestServer } from '../testing/test-server.ts';

const SIGNING_KEY = new Uint8Array(32).fill(5);

/** A server with keys, and a key of organization `acme`. */
async function startWithKeys(t: TestContext) {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  await waitUntil(() => server.health.current.isHealthy);
  const organizationId = await ensureOrganization(server.database, 'acme');
  const { secret } = await createApiKey(server.database, organizationId, {
    name: 'k',
    createdBy: null,
    expiresAt: null,
  });
  return { server, organizationId, key: secret };
}

type Ask = (path: string) => Promise<{ readonly isRefused: boolean; readonly text: string }>;

/** The same bind over every surface that makes sandboxes. */
async function everySurface(t: TestContext, server: TestServer, key: string): Promise<Record<string, Ask>> {
  const authorization = { authorization: `Bearer ${key}` };
  const { client } = await connectClient(t, server.url, authorization);
  const name = () => `s${randomUUID().slice(0, 8)}`;
  const config = (path: string) => ({ image: 'x', volumes: [`${path}:/m`] });
  return {
    rest: async (host) => {
      const mounts = [{ type: 'bind', host, guest: '/m' }];
      const image = { type: 'oci', reference: 'x' };
      const { status, body } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
        key,
        body: { name: name(), image, mounts },
      });
      return { isRefused: status === 400, text: JSON.stringify(body) };
    },
    rpc: async (path) => {
      const params = { sandbox: name(), namespace: 'acme', config: config(path) };
      const { error } = await server.call('sandbox.start', params, { headers: authorization });
      return { isRefused: error?.code === -32_602, text: JSON.stringify(error ?? '') };
    },
    mcp: async (path) => {
      const input = { sandbox: name(), namespace: 'acme', config: config(path) };
      const result = await client.callTool({ name: 'sandbox_start', arguments: input });
      return { isRefused: result.isError === true, text: textOf(result) };
    },
  };
}

test('no surface lets an organization mount what is not its own', async (t) => {
  const { server, organizationId, key } = await startWithKeys(t);
  const other = await ensureOrganization(server.database, 'other');
  const hostile = [
    '/shared/other',
    '/shared',
    '/',
    `/shared/${other}`,
    `/shared/${organizationId}/../${other}`,
    `/shared/${organizationId}x`,
    '/shared/acme',
  ];
  for (const [surface, ask] of Object.entries(await everySurface(t, server, key))) {
    for (const path of hostile) {
      const { isRefused, text } = await ask(path);
      assert.ok(isRefused, `${surface} ${path}: ${text}`);
      assert.match(text, surface === 'rest' ? /mounts\[0\]\.host/ : /config\.volumes\[0\]/);
    }
    assert.equal((await listSandboxes(server.database)).length, 0, 'nothing was written');
  }
});

test('an own folder of the host and the host volume are mounted, confined to the organization', async (t) => {
  const { server, organizationId, key } = await startWithKeys(t);
  for (const [surface, ask] of Object.entries(await everySurface(t, server, key))) {
    for (const path of [`/shared/${organizationId}/data`, 'data']) {
      const { text } = await ask(path);
      assert.doesNotMatch(text, /error|Invalid/, `${surface} ${path}`);
    }
  }
  const made = await server.orchestrator.list();
  assert.equal(made.length, 6);
  for (const { id } of made) assert.equal(server.orchestrator.requestOf(id).hostFolder, organizationId);
});

test('a key for every namespace has the rights of the host, over every surface', async (t) => {
  const { server } = await startWithKeys(t);
  const key = await signKey(SIGNING_KEY, { namespace: '*', createdAt: new Date(), expiresAt: null });
  for (const [surface, ask] of Object.entries(await everySurface(t, server, key))) {
    const { text } = await ask('/srv/data');
    assert.doesNotMatch(text, /error|Invalid/, surface);
  }
  for (const { id } of await server.orchestrator.list())
    assert.equal(server.orchestrator.requestOf(id).hostFolder, undefined);
});

test('a class that the host lacks is refused at create with a code, and nothing is written', async (t) => {
  const { server, key } = await startWithKeys(t);
  const body = { name: 'a', image: { type: 'oci', reference: 'x' }, isolation: 'microvm' };
  for (const query of ['', '?start=true']) {
    const answer = await server.rest('POST', `/sandboxes${query}`, { key, body });
    assert.deepEqual([answer.status, answer.body.error.code], [422, 'isolation_unavailable']);
  }
  assert.equal((await listSandboxes(server.database)).length, 0);
});

test('a create without a start needs no engine; one with a start is refused without it', async (t) => {
  const { server, key } = await startWithKeys(t);
  server.orchestrator.goAway();
  const body = { name: 'a', image: { type: 'oci', reference: 'x' } };
  assert.equal((await server.rest('POST', '/sandboxes', { key, body })).status, 200);
  const started = await server.rest('POST', '/sandboxes?start=true', { key, body: { ...body, name: 'b' } });
  assert.equal(started.body.error.code, 'orchestrator_unreachable');
  const headers = { authorization: `Bearer ${key}` };
  const params = { sandbox: 'c', namespace: 'acme', config: { image: 'x' } };
  const { error } = await server.call('sandbox.start', params, { headers });
  assert.match(JSON.stringify(error), /orchestrator_unreachable/);
  assert.deepEqual(
    (await listSandboxes(server.database)).map(({ name }) => name),
    ['a'],
  );
});
