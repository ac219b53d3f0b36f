import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { FakeVolumeStore } from '../testing/fake-volume-store.ts';
import { makeFolder, startTestServer, type TestServer } from '../testing/test-server.ts';
import { beginOnce } from './idempotency.ts';

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

test('a stored request is not a plain hash, from which a reader of the database could guess secrets', async (t) => {
  const server = await startTestServer(t);
  await server.rest('POST', '/sandboxes', { body: sandbox('a'), ...withKey('k1') });
  const volume = (await server.rest('GET', '/volumes/default')).body;
  await server.rest('PUT', `/volumes/${volume.id}/files/content`, {
    body: Buffer.from('hunter2'),
    headers: { 'x-svc-file-path': Buffer.from('a').toString('base64url'), 'idempotency-key': 'k2' },
  });
  const rows = await server.database.selectFrom('idempotency').select('fingerprint').execute();
  assert.equal(rows.length, 2);
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const stored = JSON.stringify(rows);
  assert.ok(!stored.includes(sha256('hunter2')), stored);
  assert.ok(!stored.includes(sha256(JSON.stringify(['POST', '/v1/sandboxes', {}, sandbox('a')]))), stored);
});

test('the deletion of an organization is replayed to the user who deleted it alone', async (t) => {
  const server = await startTestServer(t);
  await server.rest('POST', '/orgs', { body: { name: 'Acme', slug: 'acme' } });
  const remove = (key: string, confirm = 'acme') =>
    server.rest('DELETE', '/orgs/acme', { body: { confirm }, ...withKey(key) });
  const first = await remove('k1');
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const again = await remove('k1');
  assert.deepEqual([again.status, again.body], [200, first.body]);
  assert.equal(again.headers.get('idempotency-replayed'), 'true');
  assert.equal((await remove('k1', 'other')).status, 409);
  assert.equal((await remove('k2')).status, 404);
  assert.equal((await server.rest('DELETE', '/orgs/acme', { body: { confirm: 'acme' } })).status, 404);
});

test('a change of the slug is repeated under the slug that it was asked for', async (t) => {
  const server = await startTestServer(t);
  await server.rest('POST', '/orgs', { body: { name: 'Acme', slug: 'acme' } });
  const rename = () => server.rest('PATCH', '/orgs/acme', { body: { slug: 'other' }, ...withKey('k1') });
  const first = await rename();
  assert.deepEqual([first.status, first.body.slug], [200, 'other']);
  const again = await rename();
  assert.deepEqual([again.status, again.body], [200, first.body]);
});

test('calls that wait for the first one are woken by its end', async (t) => {
  const { database } = await startTestServer(t);
  const signal = AbortSignal.timeout(60_000);
  const print = { text: 'print', isSame: () => true };
  const begin = () => beginOnce(database, { scope: 'org', key: 'k' }, print, signal);
  const first = await begin();
  assert.ok('end' in first);
  // Timers do not fire, so that no call polls.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const waiting = Array.from({ length: 3 }, begin);
  await new Promise((resolve) => void setImmediate(resolve));
  await first.end({ status: 200, body: '"done"' });
  for (const outcome of await Promise.all(waiting)) {
    assert.ok(!('end' in outcome));
    assert.deepEqual([outcome.status, outcome.body], [200, '"done"']);
  }
});

const slow = (name: string) => ({ name, image: { type: 'oci', reference: 'slow' } });
const HELD = '/sandboxes?start=true&wait_for=running&wait_timeout=60';

/** Calls that did not wait would be answered before these. */
async function answerOthers(server: TestServer): Promise<void> {
  for (let asked = 0; asked < 5; asked++) await server.rest('GET', '/sandboxes');
}

test('the repetition of a held call waits with it, and gets the same answer', async (t) => {
  const server = await startTestServer(t);
  const create = () => server.rest('POST', HELD, { body: slow('a'), ...withKey('k1') });
  const first = create();
  await waitUntil(() => server.orchestrator.fetching === 1, 'the start');
  const repeated = [create(), create()];
  await answerOthers(server);
  server.orchestrator.finishFetching();
  const answers = await Promise.all([first, ...repeated]);
  assert.deepEqual(
    answers.map(({ body }) => body.status),
    ['running', 'running', 'running'],
  );
  for (const { body } of answers) assert.deepEqual(body, answers[0]?.body);
});

test('a held call whose caller disconnected is held again when it is repeated', async (t) => {
  const server = await startTestServer(t);
  const gone = new AbortController();
  const lost = fetch(`${server.url}/v1${HELD}`, {
    method: 'POST',
    body: JSON.stringify(slow('a')),
    headers: { 'content-type': 'application/json', 'idempotency-key': 'k1' },
    signal: gone.signal,
  });
  await waitUntil(() => server.orchestrator.fetching === 1, 'the start');
  gone.abort();
  await assert.rejects(lost);
  const counts = async () => await (await fetch(`${server.url}/metrics`)).text();
  const isNoticed = async () =>
    (await counts()).includes('operation="sandboxes.create",outcome="cancelled"} 1\n');
  await waitUntil(isNoticed, 'the absence');
  const again = server.rest('POST', HELD, { body: slow('a'), ...withKey('k1') });
  await answerOthers(server);
  server.orchestrator.finishFetching();
  const { status, headers, body } = await again;
  assert.deepEqual([status, body.status, headers.get('idempotency-replayed')], [200, 'running', 'true']);
  assert.doesNotMatch(await counts(), /outcome="internal"/);
  const third = await server.rest('POST', HELD, { body: slow('a'), ...withKey('k1') });
  assert.deepEqual(third.body, body);
});

test('a start that was held by a server which died is held by the next one', async (t) => {
  const server = await startTestServer(t);
  const made = (await server.rest('POST', '/sandboxes', { body: slow('a') })).body;
  const start = () =>
    server.rest('POST', `/sandboxes/${made.id}/start?wait_for=running&wait_timeout=60`, withKey('k1'));
  // What a dead server leaves: the answer of its transaction, and a lease that runs out.
  const first = start();
  await waitUntil(() => server.orchestrator.fetching === 1, 'the start');
  const past = new Date(0).toISOString();
  await server.database.updateTable('idempotency').set({ owner: 'dead', leased_until: past }).execute();
  const again = start();
  await answerOthers(server);
  server.orchestrator.finishFetching();
  const { status, body } = await again;
  assert.deepEqual([status, body.status], [200, 'running']);
  assert.equal((await first).body.status, 'running');
});

test('the leases of a killed server end when the next server of the folder starts', async (t) => {
  const folder = await makeFolder(t);
  const killed = await startTestServer(t, { folder });
  await killed.rest('POST', '/sandboxes', { body: slow('a'), ...withKey('k1') });
  // What it leaves when it is killed after the work and before the answer.
  const late = new Date(Date.now() + 3_600_000).toISOString();
  await killed.database.updateTable('idempotency').set({ leased_until: late }).execute();
  await killed.close();
  const next = await startTestServer(t, { folder });
  const { status, body } = await next.rest('POST', '/sandboxes', { body: slow('a'), ...withKey('k1') });
  assert.deepEqual([status, body.name], [200, 'a']);
});

test('a call that was taken for dead changes nothing any more', async (t) => {
  const server = await startTestServer(t);
  const { database } = server;
  const print = { text: 'print', isSame: () => true };
  const first = await beginOnce(database, { scope: 'org', key: 'k' }, print, AbortSignal.timeout(60_000));
  assert.ok('end' in first);
  await database.updateTable('idempotency').set({ owner: 'another' }).execute();
  await assert.rejects(first.settle(database, { status: 200, body: '{}' }), { code: 'unavailable' });
  await first.end({ status: 200, body: '{}' });
  const row = await database.selectFrom('idempotency').selectAll().executeTakeFirstOrThrow();
  assert.deepEqual([row.owner, row.status], ['another', null]);
});

test('a settled call is replayed at once, before its handler ends', async (t) => {
  const { database } = await startTestServer(t);
  const print = { text: 'print', isSame: () => true };
  const begin = () => beginOnce(database, { scope: 'org', key: 'k' }, print, AbortSignal.timeout(60_000));
  const first = await begin();
  assert.ok('end' in first);
  await first.settle(database, { status: 200, body: 'null' }, true);
  const again = await begin();
  assert.ok(!('end' in again));
  assert.deepEqual([again.status, again.body, again.work.isRepeat], [200, 'null', true]);
  first.hasEnded = true;
  await first.end({ status: 200, body: 'null' });
});

test('a change that was undone is not repeated as if it were there', async (t) => {
  const volumeStore = new FakeVolumeStore();
  const server = await startTestServer(t, { volumeStore });
  const create = () => server.rest('POST', '/volumes', { body: { name: 'data' }, ...withKey('k1') });
  volumeStore.isHostFull = true;
  const refused = await create();
  assert.equal(refused.body.error.code, 'insufficient_storage');
  volumeStore.isHostFull = false;
  const made = await create();
  assert.deepEqual([made.status, made.headers.get('idempotency-replayed')], [200, null]);
  assert.equal((await server.rest('GET', `/volumes/${made.body.id}`)).body.status, 'active');
});
