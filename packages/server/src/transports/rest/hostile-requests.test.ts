import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, request, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { FakeSnapshotStore } from '../../testing/fake-snapshot-store.ts';
import { FakeVolumeStore } from '../../testing/fake-volume-store.ts';
import { setQuotas } from '../../accounting/set-quotas.ts';
import { ensureOrganization } from '../../store/organizations.ts';
import { type TestServer } from '../../testing/test-server.ts';
import { startWithPeople } from '../../testing/people.ts';
import { body, startHealthy, until } from '../../testing/sandboxes.ts';

const MIB = 1024 * 1024;
const GIB = 1024 ** 3;

function cursorOf(...values: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

test('a member does not get the rights of an admin by making a key', async (t) => {
  const { server, person, organization } = await startWithPeople(t);
  const [owner, member] = [await person('owner'), await person('member')];
  await organization('acme', { owner, member });
  const keyOf = async ({ key }: { readonly key: string }) =>
    (await server.rest('POST', '/orgs/acme/api-keys', { key, body: { name: 'k' } })).body.key as string;
  const [made, bigger] = [await keyOf(member), await keyOf(owner)];
  assert.equal((await server.rest('GET', '/sandboxes', { key: made })).status, 200);
  assert.equal((await server.rest('GET', '/events', { key: made })).body.error.code, 'forbidden');
  assert.equal((await server.rest('GET', '/events', { key: bigger })).status, 200);
});

test('a password for one registry is not shown to another one', async (t) => {
  const { server, person, organization, apiKey } = await startWithPeople(t);
  const owner = await person('owner');
  await organization('acme', { owner });
  const password = { registry_host: 'ghcr.io', username: 'u', password: 'a secret' };
  const put = await server.rest('PUT', '/orgs/acme/registries', { key: owner.key, body: password });
  const registry = { mode: 'specific', credential_id: put.body.id };
  const key = await apiKey('acme');
  const create = (name: string, reference: string) =>
    server.rest('POST', '/sandboxes', { key, body: body(name, { reference, registry }) });
  const refused = await create('thief', 'registry.attacker.example/image');
  assert.deepEqual([refused.status, refused.body.error.details.field], [400, 'registry.credential_id']);
  assert.equal((await create('hub', 'python')).status, 400);
  assert.equal((await create('mine', 'GHCR.io/acme/image')).status, 200);
});

test('the engine gives no volume more than the quota has room for, not even for a moment', async (t) => {
  const volumeStore = new FakeVolumeStore();
  const server = await startHealthy(t, { volumeStore });
  const organizationId = await ensureOrganization(server.database, 'default');
  await setQuotas(server.database, organizationId, { max_total_storage_gib: 10 });
  const make = (name: string) =>
    server.rest('POST', '/volumes', { body: { name, capacity_gib: 4 } }).then((made) => made.body.id);
  const [first] = [await make('first'), await make('second')];
  const sizes: number[] = [];
  const resize = volumeStore.resizeVolume.bind(volumeStore);
  volumeStore.resizeVolume = (id, capacityMib) => (sizes.push(capacityMib), resize(id, capacityMib));
  const grown = await server.rest('PATCH', `/volumes/${first}`, { body: { capacity_gib: 9 } });
  assert.equal(grown.body.error.code, 'quota_exceeded');
  assert.deepEqual(sizes, []);
  assert.equal((await server.rest('PATCH', `/volumes/${first}`, { body: { capacity_gib: 6 } })).status, 200);
});

async function stoppedSandbox(server: TestServer): Promise<string> {
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('source') });
  await server.rest('POST', `/sandboxes/${made.body.id}/stop`);
  await until(server, 'source', 'stopped');
  return made.body.id;
}

test('many snapshots that are asked for at once get no more room than one after the other', async (t) => {
  const store = new FakeSnapshotStore();
  const server = await startHealthy(t, { snapshotStore: store });
  const organizationId = await ensureOrganization(server.database, 'default');
  await setQuotas(server.database, organizationId, { max_snapshot_storage_gib: 1 });
  const create = store.createSnapshot.bind(store);
  store.createSnapshot = async (asked) => ({ ...(await create(asked)), storedBytes: 0.6 * GIB });
  const sandboxId = await stoppedSandbox(server);
  store.isAway = true;
  const names = ['a', 'b', 'c'];
  for (const name of names) {
    const asked = { kind: 'disk', sandbox_id: sandboxId, name };
    assert.equal((await server.rest('POST', '/snapshots', { body: asked })).status, 202);
  }
  store.isAway = false;
  let operations: { readonly status: string; readonly error: { readonly code: string } | null }[] = [];
  await waitUntil(async () => {
    operations = (await server.rest('GET', '/snapshot-operations')).body.data;
    return operations.every(({ status }) => status === 'succeeded' || status === 'failed');
  }, 'the snapshots');
  const codes = operations.map(({ error }) => error?.code ?? 'none').toSorted();
  assert.deepEqual(codes, ['none', 'quota_exceeded', 'quota_exceeded']);
});

test('a snapshot of an organization that was deleted meanwhile is not kept', async (t) => {
  const store = new FakeSnapshotStore();
  const server = await startHealthy(t, { snapshotStore: store });
  const sandboxId = await stoppedSandbox(server);
  store.isAway = true;
  const asked = { kind: 'disk', sandbox_id: sandboxId, name: 'late' };
  assert.equal((await server.rest('POST', '/snapshots', { body: asked })).status, 202);
  const deleted = await server.rest('DELETE', '/orgs/default', { body: { confirm: 'default' } });
  assert.equal(deleted.status, 200, JSON.stringify(deleted.body));
  store.isAway = false;
  const operation = () =>
    server.database.selectFrom('snapshot_operations').select('status').executeTakeFirstOrThrow();
  await waitUntil(async () => (await operation()).status === 'failed', 'the operation');
  const kept = await server.database.selectFrom('snapshots').select('id').execute();
  assert.deepEqual(kept, []);
  await waitUntil(async () => (await store.listSnapshots()).length === 0, 'the copy being removed');
});

test('the disk of a snapshot counts for limits and bills, also when no request names its size', async (t) => {
  const server = await startHealthy(t);
  const sandboxId = await stoppedSandbox(server);
  await server.rest('POST', '/snapshots', { body: { kind: 'disk', sandbox_id: sandboxId, name: 's' } });
  await waitUntil(async () => (await server.rest('GET', '/snapshots/by-name/s')).status === 200, 'it');
  const { id, manifest } = (await server.rest('GET', '/snapshots/by-name/s')).body;
  const create = (name: string) =>
    server.rest('POST', '/sandboxes?start=true&wait_for=running', {
      body: { name, source: 'disk_snapshot', disk_snapshot_ref: { type: 'managed', id } },
    });
  const diskMib = manifest.state.upper.size_bytes / MIB;
  assert.equal((await create('copy')).body.spec.resources.disk_size_mib, diskMib);
  const organizationId = await ensureOrganization(server.database, 'default');
  await setQuotas(server.database, organizationId, { max_disk_size_mib_per_sandbox: diskMib - 1 });
  assert.equal((await create('more')).body.error.code, 'quota_exceeded');
});

test('cursors, names and labels that no database should see are 400', async (t) => {
  const server = await startHealthy(t);
  const codeOf = async (path: string) => (await server.rest('GET', path)).body.error?.code;
  assert.equal(await codeOf(`/events?cursor=${cursorOf('events', 'abc')}`), 'invalid_cursor');
  assert.equal(await codeOf(`/sandboxes?cursor=${cursorOf('sandboxes', 'a\0', 'b')}`), 'invalid_cursor');
  for (const path of ['/events?event_type=%00', '/sandboxes/by-name/%00', '/orgs/%00/sandboxes']) {
    assert.equal(await codeOf(path), 'invalid_request', path);
  }
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, '']));
  for (const labels of [{ a: '\0' }, { 'a\0': '' }, many]) {
    const path = `/sandboxes?labels=${encodeURIComponent(JSON.stringify(labels))}`;
    assert.equal(await codeOf(path), 'invalid_request');
    const refused = await server.rest('POST', '/sandboxes', { body: body('labelled', { labels }) });
    assert.equal(refused.status, 400);
  }
});

test('HEAD does not open a stream', async (t) => {
  const server = await startHealthy(t);
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('box') });
  const url = `${server.url}/v1/sandboxes/${made.body.id}/logs`;
  const asking = request(url, { method: 'HEAD', agent: false }).end();
  const [{ statusCode }] = (await once(asking, 'response')) as [IncomingMessage];
  assert.equal(statusCode, 405);
  const plain = await fetch(`${server.url}/v1/sandboxes`, { method: 'HEAD' });
  assert.equal(plain.status, 200);
});

test('a source that an answer follows ends with the answer', async (t) => {
  const server = await startHealthy(t);
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('box') });
  const { orchestrator } = server;
  const signals: AbortSignal[] = [];
  const logs = orchestrator.logs.bind(orchestrator);
  orchestrator.logs = (id, options, signal) => (signals.push(signal), logs(id, options, signal));
  const asking = get(`${server.url}/v1/sandboxes/${made.body.id}/logs`, { agent: false });
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  await server.rest('POST', `/sandboxes/${made.body.id}/stop`);
  response.resume();
  await once(response, 'end');
  await waitUntil(() => signals.length === 1 && signals.every(({ aborted }) => aborted), 'the end');
});

test('one organization cannot take all places of waiting calls', async (t) => {
  const { server, organization, apiKey } = await startWithPeople(t, { restSettings: { maxWaiters: 2 } });
  await waitUntil(() => server.health.current.isHealthy);
  await organization('greedy', {});
  await organization('modest', {});
  const [greedy, modest] = [await apiKey('greedy'), await apiKey('modest')];
  const create = (key: string, name: string, reference: string) =>
    server.rest('POST', '/sandboxes?start=true&wait_for=running', { key, body: body(name, { reference }) });
  const held = create(greedy, 'one', 'slow');
  await waitUntil(() => server.orchestrator.fetching === 1);
  assert.equal((await create(greedy, 'two', 'x')).status, 429);
  assert.equal((await create(modest, 'one', 'x')).body.status, 'running');
  server.orchestrator.finishFetching();
  assert.equal((await held).body.status, 'running');
  assert.equal((await create(greedy, 'two', 'x')).body.status, 'running');
});
