import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { signKey } from '../../access/signed-keys.ts';
import { startTestServer } from '../../testing/test-server.ts';

const SIGNING_KEY = randomBytes(32);
const METRICS = { jsonrpc: '2.0', method: 'sandbox.metrics.get', params: {}, id: 'q' };
const key = (namespace = '*', expiresAt: Date | null = null) =>
  signKey(SIGNING_KEY, { namespace, createdAt: new Date(), expiresAt });
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test('a request without credentials is -32002 Authentication required with status 401 and its own id', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const { status, headers, body } = await server.post(METRICS);
  assert.equal(status, 401);
  assert.equal(headers.get('www-authenticate'), 'Bearer');
  assert.equal(body.error?.code, -32_002);
  assert.equal(body.error.message, 'Authentication required');
  assert.equal(body.id, 'q');
});

test('a batch without credentials is refused as a whole and runs nothing', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const start = {
    jsonrpc: '2.0',
    method: 'sandbox.start',
    params: { sandbox: 'a', config: { image: 'x' } },
    id: 1,
  };
  const { status, body } = await server.post([start, METRICS]);
  assert.equal(status, 401);
  assert.equal(body.error?.code, -32_002);
  assert.deepEqual(await server.orchestrator.list(), []);
});

test('a key is taken as Bearer in any case, bare, and from Proxy-Authorization', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const token = await key();
  for (const headers of [
    { authorization: `Bearer ${token}` },
    { authorization: `bearer  ${token}` },
    { authorization: token },
    { 'proxy-authorization': `Bearer ${token}` },
  ]) {
    assert.equal((await server.post(METRICS, { headers })).status, 200, JSON.stringify(headers));
  }
});

test('a bad, expired or foreign key is 401 and says no more than a missing one', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const foreign = await signKey(randomBytes(32), { namespace: '*', createdAt: new Date(), expiresAt: null });
  const expired = await key('*', new Date(Date.now() - 60_000));
  for (const token of ['x', 'svc_x', foreign, expired, '']) {
    const { status, body } = await server.post(METRICS, bearer(token));
    assert.equal(status, 401);
    assert.equal(body.error?.code, -32_002);
    assert.equal(body.error.message, 'Authentication required');
  }
});

test('callers without a key do not learn which methods exist or what is wrong with the parameters', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  for (const body of [
    { ...METRICS, method: 'nope' },
    { ...METRICS, params: { namespace: '' } },
  ]) {
    assert.equal((await server.post(body)).body.error?.code, -32_002);
  }
});

test('a scoped key reaches its own namespace and is refused every other with 403', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const scoped = bearer(await key('team'));
  const params = { sandbox: 'a', config: { image: 'x' } };
  const own = await server.post(
    { ...METRICS, method: 'sandbox.start', params: { ...params, namespace: 'team' } },
    scoped,
  );
  assert.equal(own.status, 200);
  assert.equal(own.body.result, 'Sandbox a started successfully');
  for (const [method, rest] of [
    ['sandbox.start', { config: { image: 'x' } }],
    ['sandbox.stop', {}],
    ['sandbox.metrics.get', {}],
    ['sandbox.repl.run', { language: 'python', code: '1' }],
    ['sandbox.command.run', { command: 'true' }],
  ] as const) {
    const other = await server.post(
      { ...METRICS, method, params: { sandbox: 'a', namespace: 'other', ...rest } },
      scoped,
    );
    assert.equal(other.status, 403, method);
    assert.equal(other.body.error?.code, -32_002);
    assert.equal(other.body.error.message, "Access denied to namespace 'other'");
  }
  const missing = await server.post({ ...METRICS, params: {} }, scoped);
  assert.equal(missing.body.error?.message, "Access denied to namespace 'default'");
});

test('metrics of * show what the key reaches and nothing else', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const all = bearer(await key());
  for (const namespace of ['team', 'other']) {
    await server.call('sandbox.start', { sandbox: 'a', namespace, config: { image: 'x' } }, all);
  }
  const seen = async (options: { headers: Record<string, string> }) =>
    (
      (await server.call('sandbox.metrics.get', { namespace: '*' }, options)).result as unknown as {
        sandboxes: { namespace: string }[];
      }
    ).sandboxes.map(({ namespace }) => namespace);
  assert.deepEqual(await seen(all), ['other', 'team']);
  assert.deepEqual(await seen(bearer(await key('team'))), ['team']);
});

test('development mode asks for no key', async (t) => {
  const server = await startTestServer(t);
  assert.equal((await server.post(METRICS)).status, 200);
  assert.equal((await server.post(METRICS, bearer('nonsense'))).status, 200);
});

test('Prometheus needs a key for all namespaces', async (t) => {
  const server = await startTestServer(t, { signingKey: SIGNING_KEY });
  const scrape = async (headers: Record<string, string>) =>
    (await fetch(`${server.url}/metrics`, { headers })).status;
  assert.equal(await scrape({}), 401);
  assert.equal(await scrape({ authorization: await key('team') }), 403);
  assert.equal(await scrape({ authorization: await key() }), 200);
});
