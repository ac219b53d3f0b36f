import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Volume } from '@svc/contract/rest';
import { FakeVolumeStore } from '../../testing/fake-volume-store.ts';
import { ensureOrganization } from '../../store/organizations.ts';
import { addVolume } from '../../store/volumes.ts';
import {
  nextMillisecond,
  startTestServer,
  type RestOptions,
  type TestServerOptions,
} from '../../testing/test-server.ts';

const GIB = 1024 ** 3;

/** A server whose volumes are in memory. */
async function start(t: TestContext, options: TestServerOptions = {}) {
  const volumeStore = new FakeVolumeStore();
  const server = await startTestServer(t, { volumeStore, ...options });
  const create = (name: string, more: object = {}) =>
    server.rest('POST', '/volumes', { body: { name, ...more } });
  const events = async () =>
    (await server.database.selectFrom('events').selectAll().orderBy('sequence').execute()).map((event) => ({
      type: event.event_type,
      category: event.category,
      payload: JSON.parse(event.payload) as Record<string, unknown>,
    }));
  return { server, volumeStore, create, events };
}

test('a volume is created with what it was given, in the engine too, and noted', async (t) => {
  const { server, volumeStore, create, events } = await start(t);
  const { status, body, headers } = await create('build-cache', { capacity_gib: 3, labels: { team: 'a' } });
  assert.equal(status, 200);
  assert.partialDeepStrictEqual(body, {
    name: 'build-cache',
    kind: 'managed',
    storage: 'block',
    status: 'active',
    capacity_bytes: 3 * GIB,
    used_bytes: null,
    labels: { team: 'a' },
  });
  assert.equal(headers.get('etag'), '"1"');
  assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const [made] = await volumeStore.listVolumes();
  assert.partialDeepStrictEqual(made, { id: body.id, capacityMib: 3 * 1024 });
  assert.partialDeepStrictEqual(await events(), [
    { type: 'volume_created', category: 'volume', payload: { volume_id: body.id, name: 'build-cache' } },
  ]);
  const found = await server.rest('GET', `/volumes/${body.id}`);
  assert.deepEqual(found.body, { ...body, used_bytes: 0 });
});

test('nulls and absences mean no cap of its own and no labels', async (t) => {
  const { create, volumeStore } = await start(t, { restSettings: { defaultVolumeGib: 2 } });
  const { status, body } = await create('a', { capacity_gib: null, labels: null, storage: null });
  assert.deepEqual([status, body.capacity_bytes, body.labels], [200, null, {}]);
  assert.equal((await create('b', { storage: 'block' })).body.capacity_bytes, null);
  assert.ok((await volumeStore.listVolumes()).every(({ capacityMib }) => capacityMib === 2048));
});

test('a bad field of a new volume is named', async (t) => {
  const { server, create, events } = await start(t);
  const names = ['', 'Upper', 'a--b', '-a', 'a-', 'a_b', 'a.b', 'ä', 'x'.repeat(129)];
  for (const name of names) assert.equal((await create(name)).body.error?.details.field, 'name', name);
  for (const capacity of [0, -1, 1.5, 2 ** 40, '5']) {
    const { status, body } = await create('ok', { capacity_gib: capacity });
    assert.deepEqual([status, body.error.details.field], [400, 'capacity_gib'], String(capacity));
  }
  for (const key of ['sandbox.x', 'microsandbox.x', 'service.x', 'svc.x']) {
    const { status, body } = await create('ok', { labels: { [key]: 'y' } });
    assert.deepEqual([status, body.error.details.field], [400, `labels.${key}`]);
  }
  assert.equal((await create('ok', { storage: 'object' })).status, 400);
  assert.equal((await create('ok', { extra: 1 })).body.error.details.field, 'extra');
  assert.equal((await server.rest('POST', '/volumes', { body: {} })).body.error.details.field, 'name');
  assert.deepEqual(await events(), []);
});

test('a name that is taken is 409, and the name of another organization is free', async (t) => {
  const { server, create } = await start(t);
  const organizationId = await ensureOrganization(server.database, 'other');
  await addVolume(server.database, { organizationId, name: 'data', capacityGib: null, labels: {} });
  assert.equal((await create('data')).status, 200);
  const { status, body } = await create('data');
  assert.deepEqual([status, body.error.code], [409, 'name_already_exists']);
});

test('a capacity over all the storage of the organization is 400, beyond what is left 429', async (t) => {
  const { server, create } = await start(t);
  await create('first', { capacity_gib: 4 });
  await server.database
    .updateTable('organizations')
    .set({ quotas: '{"max_total_storage_gib":10}' })
    .execute();
  const tooLarge = await create('second', { capacity_gib: 11 });
  assert.deepEqual([tooLarge.status, tooLarge.body.error.details.field], [400, 'capacity_gib']);
  const tooMuch = await create('second', { capacity_gib: 7 });
  assert.deepEqual([tooMuch.status, tooMuch.body.error.code], [429, 'quota_exceeded']);
  const { body: second } = await create('second', { capacity_gib: 6 });
  const grow = (capacity: number) =>
    server.rest('PATCH', `/volumes/${second.id}`, { body: { capacity_gib: capacity } });
  assert.equal((await grow(7)).status, 429);
  assert.equal((await grow(11)).status, 400);
  assert.equal((await grow(5)).status, 200);
});

test('while the engine is away nothing is created, and lists have no usage', async (t) => {
  const { server, volumeStore, create, events } = await start(t);
  const { body: volume } = await create('kept');
  await nextMillisecond();
  await waitUntil(async () => (await server.rest('GET', '/volumes/default')).body.used_bytes === 0);
  volumeStore.goAway();
  const { status, body } = await create('lost');
  assert.deepEqual([status, body.error.code], [502, 'orchestrator_unreachable']);
  const listed = await server.rest('GET', '/volumes');
  assert.equal(listed.status, 200);
  assert.deepEqual(
    listed.body.map((found: Volume) => [found.name, found.used_bytes]),
    [
      ['kept', null],
      [null, null],
    ],
  );
  const capped = await server.rest('PATCH', `/volumes/${volume.id}`, { body: { capacity_gib: 5 } });
  assert.equal(capped.status, 502);
  assert.deepEqual(
    (await events()).map(({ type }) => type),
    ['volume_created'],
  );
  volumeStore.comeBack();
  assert.equal((await create('lost')).status, 200);
});

test('a volume that the engine cannot make is not there afterwards, and its name is free', async (t) => {
  const { server, volumeStore, create, events } = await start(t);
  volumeStore.isHostFull = true;
  const { status, body } = await create('data');
  assert.deepEqual([status, body.error.code], [507, 'insufficient_storage']);
  const isListed = async () =>
    (await server.rest('GET', '/volumes')).body.some(({ name }: Volume) => name === 'data');
  await waitUntil(async () => !(await isListed()));
  volumeStore.isHostFull = false;
  assert.equal((await create('data')).status, 200);
  assert.deepEqual(
    (await events()).map(({ type }) => type),
    ['volume_created', 'volume_deleted', 'volume_created'],
  );
});

test('the list is an array with the host volume in it and what each holds', async (t) => {
  const { server, volumeStore, create } = await start(t);
  const { body: data } = await create('data');
  await volumeStore.writeVolumeFile(data.id, 'file', bytes(1234));
  await nextMillisecond();
  const { status, body } = await server.rest('GET', '/volumes');
  assert.equal(status, 200);
  assert.deepEqual(
    body.map(({ name, kind }: Volume) => [name, kind]),
    [
      ['data', 'managed'],
      [null, 'host'],
    ],
  );
  assert.equal(body[0].used_bytes, 1234);
});

test('the default volume is of kind host and always the same', async (t) => {
  const { server } = await start(t);
  const { status, body } = await server.rest('GET', '/volumes/default');
  assert.equal(status, 200);
  assert.partialDeepStrictEqual(body, { kind: 'host', name: null, capacity_bytes: null, status: 'active' });
  const answers = await Promise.all(Array.from({ length: 5 }, () => server.rest('GET', '/volumes/default')));
  assert.ok(answers.every((answer) => answer.body.id === body.id));
  assert.equal((await server.rest('GET', '/orgs/default/volumes/default')).body.id, body.id);
});

test('an update changes what it names: a number caps, null lifts the cap, labels are replaced whole', async (t) => {
  const { server, volumeStore, create, events } = await start(t);
  const { body: made } = await create('data', { capacity_gib: 2, labels: { a: '1', b: '2' } });
  const update = (body: object) => server.rest('PATCH', `/volumes/${made.id}`, { body });
  const capped = await update({ capacity_gib: 5 });
  assert.equal(capped.status, 200);
  assert.partialDeepStrictEqual(capped.body, {
    capacity_bytes: 5 * GIB,
    used_bytes: 0,
    labels: { a: '1', b: '2' },
  });
  assert.equal((await volumeStore.listVolumes())[0]?.capacityMib, 5 * 1024);
  const relabelled = await update({ labels: { c: '3' } });
  assert.deepEqual([relabelled.body.labels, relabelled.body.capacity_bytes], [{ c: '3' }, 5 * GIB]);
  const lifted = await update({ capacity_gib: null });
  assert.deepEqual([lifted.body.capacity_bytes, lifted.body.labels], [null, { c: '3' }]);
  assert.equal((await volumeStore.listVolumes())[0]?.capacityMib, 10 * 1024);
  assert.equal(lifted.headers.get('etag'), '"4"');
  assert.equal((await update({ labels: { 'svc.x': '' } })).status, 400);
  assert.equal((await update({ name: 'other' })).body.error.details.field, 'name');
  assert.equal((await update({ labels: null })).status, 400);
  assert.deepEqual(
    (await events()).filter(({ type }) => type === 'volume_updated').map(({ payload }) => payload),
    [
      { volume_id: made.id, name: 'data', capacity_gib: 5 },
      { volume_id: made.id, name: 'data', labels: { c: '3' } },
      { volume_id: made.id, name: 'data', capacity_gib: null },
    ],
  );
});

test('a volume does not shrink while a sandbox has it', async (t) => {
  const { server, volumeStore, create } = await start(t);
  const { body: made } = await create('data', { capacity_gib: 3 });
  volumeStore.hold(made.id, true);
  const held = await server.rest('PATCH', `/volumes/${made.id}`, { body: { capacity_gib: 1 } });
  assert.deepEqual([held.status, held.body.error.code], [409, 'volume_in_use']);
  assert.equal((await server.rest('GET', `/volumes/${made.id}`)).body.capacity_bytes, 3 * GIB);
});

test('the host volume can be neither capped nor deleted', async (t) => {
  const { server } = await start(t);
  const { body: host } = await server.rest('GET', '/volumes/default');
  const capped = await server.rest('PATCH', `/volumes/${host.id}`, { body: { capacity_gib: 5 } });
  assert.equal(capped.status, 409);
  assert.partialDeepStrictEqual(capped.body.error, {
    code: 'invalid_request',
    message: 'the host volume cannot be capped',
  });
  const deleted = await server.rest('DELETE', `/volumes/${host.id}`);
  assert.equal(deleted.status, 409);
  assert.partialDeepStrictEqual(deleted.body.error, {
    code: 'invalid_request',
    message: 'the host volume cannot be deleted',
  });
  const labelled = await server.rest('PATCH', `/volumes/${host.id}`, { body: { labels: { a: 'b' } } });
  assert.deepEqual([labelled.status, labelled.body.labels], [200, { a: 'b' }]);
});

test('a change is refused when the volume was changed meanwhile', async (t) => {
  const { server, create } = await start(t);
  const { body: made, headers } = await create('data');
  const change = (ifMatch: string) =>
    server.rest('PATCH', `/volumes/${made.id}`, { body: { labels: {} }, headers: { 'if-match': ifMatch } });
  const first = await change(headers.get('etag') ?? '');
  assert.equal(first.status, 200);
  const second = await change(headers.get('etag') ?? '');
  assert.deepEqual([second.status, second.body.error.code], [412, 'precondition_failed']);
  assert.equal((await change(first.headers.get('etag') ?? '')).status, 200);
  const stale: RestOptions = { headers: { 'if-match': '"1"' } };
  assert.equal((await server.rest('DELETE', `/volumes/${made.id}`, stale)).status, 412);
});

test('a deleted volume is gone soon, from the engine too, and its name is free', async (t) => {
  const { server, volumeStore, create, events } = await start(t);
  const { body: made } = await create('data');
  const { status, body } = await server.rest('DELETE', `/volumes/${made.id}`);
  assert.equal(status, 200);
  assert.match(body.message, /scheduled for deletion/);
  await waitUntil(async () => (await server.rest('GET', `/volumes/${made.id}`)).status === 404);
  assert.ok(!(await volumeStore.listVolumes()).some(({ id }) => id === made.id));
  assert.equal((await server.rest('DELETE', `/volumes/${made.id}`)).status, 404);
  assert.equal((await create('data')).status, 200);
  assert.deepEqual(
    (await events()).map(({ type }) => type),
    ['volume_created', 'volume_deleted', 'volume_created'],
  );
});

test('while the engine is away a volume is being deleted, can be used no more, and goes when it is back', async (t) => {
  const { server, volumeStore, create, events } = await start(t);
  const { body: made } = await create('data');
  volumeStore.goAway();
  assert.equal((await server.rest('DELETE', `/volumes/${made.id}`)).status, 200);
  assert.equal((await server.rest('DELETE', `/volumes/${made.id}`)).status, 200);
  const { body: listed } = await server.rest('GET', '/volumes');
  assert.equal(listed.find(({ id }: Volume) => id === made.id).status, 'deleting');
  const changed = await server.rest('PATCH', `/volumes/${made.id}`, { body: { labels: {} } });
  assert.deepEqual([changed.status, changed.body.error.code], [409, 'invalid_state_transition']);
  const read = await server.rest('GET', `/volumes/${made.id}/files`, { headers: { 'x-svc-file-path': '' } });
  assert.deepEqual([read.status, read.body.error.code], [409, 'invalid_state_transition']);
  assert.equal((await create('data')).status, 502);
  volumeStore.comeBack();
  await waitUntil(async () => (await server.rest('GET', `/volumes/${made.id}`)).status === 404);
  assert.equal((await events()).filter(({ type }) => type === 'volume_deleted').length, 1);
});

test('a volume that a sandbox has among its mounts is not deleted', async (t) => {
  const { server, create } = await start(t);
  const { body: made } = await create('data');
  const sandboxId = randomUUID();
  await mountIn(server.database, sandboxId, made.id);
  const { status, body } = await server.rest('DELETE', `/volumes/${made.id}`);
  assert.deepEqual([status, body.error.code], [409, 'volume_in_use']);
  assert.match(body.error.message, /sandbox 'user-of-it'/);
  const now = new Date().toISOString();
  await server.database
    .updateTable('sandboxes')
    .set({ removed_at: now })
    .where('id', '=', sandboxId)
    .execute();
  assert.equal((await server.rest('DELETE', `/volumes/${made.id}`)).status, 200);
});

test('an id that is no UUID is 400, an unknown one 404, in every operation', async (t) => {
  const { server } = await start(t);
  for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', {}]] as const) {
    const malformed = await server.rest(method, '/volumes/nonsense', body === undefined ? {} : { body });
    assert.deepEqual([malformed.status, malformed.body.error.details.field], [400, 'id'], method);
    const unknown = await server.rest(method, `/volumes/${randomUUID()}`, body === undefined ? {} : { body });
    assert.deepEqual([unknown.status, unknown.body.error.code], [404, 'volume_not_found'], method);
  }
  assert.equal((await server.rest('GET', `/volumes/${randomUUID()}/metrics`)).status, 404);
});

test('one idempotency key creates one volume', async (t) => {
  const { server } = await start(t);
  const options = { body: { name: 'data' }, headers: { 'idempotency-key': 'k1' } };
  const [first, second] = [
    await server.rest('POST', '/volumes', options),
    await server.rest('POST', '/volumes', options),
  ];
  assert.deepEqual([first.status, second.status], [200, 200]);
  assert.deepEqual(second.body, first.body);
  assert.equal(second.headers.get('idempotency-replayed'), 'true');
});

test('metrics show what the volume held over time', async (t) => {
  const { server, volumeStore, create } = await start(t, { restSettings: { volumeSampleMs: 30 } });
  const { body: made } = await create('data', { capacity_gib: 1 });
  const writtenAt = Date.now();
  await volumeStore.writeVolumeFile(made.id, 'file', bytes(777));
  const started = new Date(Date.now() - 3_600_000).toISOString();
  await server.database.updateTable('volume_usage').set({ started_at: started }).execute();
  const read = async () => (await server.rest('GET', `/volumes/${made.id}/metrics?step_secs=60`)).body;
  await waitUntil(async () => (await read()).metrics.used_bytes.length > 0);
  const { volume_id: id, range, metrics } = await read();
  assert.equal(id, made.id);
  assert.equal(range.end - range.start, 3_600_000);
  assert.equal(range.step_secs, 60);
  const [series] = metrics.used_bytes;
  assert.deepEqual(series.labels, {});
  const before = series.samples.filter(([atMs]: [number]) => atMs < writtenAt);
  assert.ok(before.length >= 59 && before.every(([, value]: number[]) => value === 0));
  // A minute that has begun since may have been looked at.
  const later = series.samples.slice(before.length);
  assert.ok(later.every(([, value]: number[]) => value === 0 || value === 777));
  assert.deepEqual(metrics.capacity_bytes[0].samples[0][1], GIB);
  const bad = await server.rest('GET', `/volumes/${made.id}/metrics?step_secs=1`);
  assert.deepEqual([bad.status, bad.body.error.details.field], [400, 'step_secs']);
  assert.equal((await server.rest('GET', `/volumes/${made.id}/metrics?range_secs=604801`)).status, 400);
});

async function* bytes(length: number): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.alloc(length));
}

async function mountIn(
  database: Awaited<ReturnType<typeof startTestServer>>['database'],
  sandboxId: string,
  volumeId: string,
): Promise<void> {
  const now = new Date().toISOString();
  await database
    .insertInto('sandboxes')
    .values({
      id: sandboxId,
      organization_id: await ensureOrganization(database, 'default'),
      name: 'user-of-it',
      slug: 'user-of-it',
      spec: '{"image":{"type":"oci","reference":"x"}}',
      ports: '[]',
      desired: 'stopped',
      observed: 'created',
      failure_message: null,
      created_at: now,
      started_at: null,
      ended_at: null,
      removed_at: null,
    })
    .execute();
  await database
    .insertInto('sandbox_volumes')
    .values({ sandbox_id: sandboxId, volume_id: volumeId, mount_path: '/data', is_read_only: 0 })
    .execute();
}
