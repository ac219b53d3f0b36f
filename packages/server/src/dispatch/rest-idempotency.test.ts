import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestServer, waitUntil } from '../test-server.ts';

const sandbox = (name: string) => ({ name, image: { type: 'oci', reference: 'python' } });
const withKey = (key: string) => ({ headers: { 'idempotency-key': key } });

test('the first outcome is repeated, marked as such, and nothing is done twice', async (t) => {
  const server = await startTestServer(t);
  const first = await server.rest('POST', '/sandboxes', { body: sandbox('a'), ...withKey('k1') });
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assert.equal(first.headers.get('idempotency-replayed'), null);
  const second = await server.rest('POST', '/sandboxes', { body: sandbox('a'), ...withKey('k1') });
  assert.deepEqual([second.status, second.body], [200, first.body]);
  assert.equal(second.headers.get('idempotency-replayed'), 'true');
  assert.equal((await server.rest('GET', '/sandboxes')).body.data.length, 1);
});

test('a refusal is an outcome too', async (t) => {
  const server = await startTestServer(t);
  await server.rest('POST', '/sandboxes', { body: sandbox('a') });
  const refused = await server.rest('POST', '/sandboxes', { body: sandbox('a'), ...withKey('k1') });
  assert.equal(refused.status, 409);
  await server.rest('DELETE', `/sandboxes/by-name/a`);
  const again = await server.rest('POST', '/sandboxes', { body: sandbox('a'), ...withKey('k1') });
  assert.deepEqual([again.status, again.body], [409, refused.body]);
});

test('a key that was used for another body or another address is a conflict', async (t) => {
  const server = await startTestServer(t);
  await server.rest('POST', '/sandboxes', { body: sandbox('a'), ...withKey('k1') });
  const otherBody = await server.rest('POST', '/sandboxes', { body: sandbox('b'), ...withKey('k1') });
  const otherPath = await server.rest('POST', '/volumes', { body: { name: 'a' }, ...withKey('k1') });
  for (const { status, body } of [otherBody, otherPath]) {
    assert.deepEqual([status, body.error.code], [409, 'idempotency_conflict']);
  }
});

test('of many calls with one key at once, one does the work and all get its answer', async (t) => {
  const server = await startTestServer(t);
  const calls = Array.from({ length: 20 }, () =>
    server.rest('POST', '/sandboxes', { body: sandbox('a'), ...withKey('k1') }),
  );
  const answers = await Promise.all(calls);
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
  const fresh = answers.filter(({ headers }) => headers.get('idempotency-replayed') === null);
  assert.equal(fresh.length, 1);
});

test('a failure that may pass is not remembered', async (t) => {
  const server = await startTestServer(t);
  const start = () => server.rest('POST', '/sandboxes?start=true', { body: sandbox('a'), ...withKey('k1') });
  await waitUntil(() => server.health.current.isHealthy, 'the engine');
  server.orchestrator.goAway();
  await waitUntil(() => !server.health.current.isHealthy, 'the absence');
  assert.equal((await start()).status, 502);
  server.orchestrator.comeBack();
  await waitUntil(() => server.health.current.isHealthy, 'the return');
  const { status, headers } = await start();
  assert.deepEqual([status, headers.get('idempotency-replayed')], [200, null]);
});

test('a key that is empty or too long is refused by name', async (t) => {
  const server = await startTestServer(t);
  const { status, body } = await server.rest('POST', '/sandboxes', {
    body: sandbox('a'),
    ...withKey('x'.repeat(256)),
  });
  assert.deepEqual([status, body.error.details.field], [400, 'Idempotency-Key']);
});

test('a streamed body is compared by what was sent, not by its address alone', async (t) => {
  const server = await startTestServer(t);
  const volume = (await server.rest('GET', '/volumes/default')).body;
  const path = Buffer.from('a.txt').toString('base64url');
  const put = (content: string) =>
    server.rest('PUT', `/volumes/${volume.id}/files/content`, {
      body: Buffer.from(content),
      headers: { 'x-svc-file-path': path, 'idempotency-key': 'k1' },
    });
  assert.equal((await put('one')).status, 200);
  assert.equal((await put('one')).headers.get('idempotency-replayed'), 'true');
  const other = await put('two');
  assert.deepEqual([other.status, other.body.error.code], [409, 'idempotency_conflict']);
});
