import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { setQuotas, type QuotaChanges } from '../../accounting/set-quotas.ts';
import { addSnapshot } from '../../testing/stored-usage.ts';
import { startWithPeople } from '../../testing/people.ts';

const IMAGE = { image: { type: 'oci', reference: 'x' } };

async function startAcme(t: TestContext, quotas: QuotaChanges = {}) {
  const people = await startWithPeople(t, { restSettings: { limitCheckMs: 20 } });
  const member = await people.person('member');
  const id = await people.organization('acme', { member });
  const key = await people.apiKey('acme');
  const { server } = people;
  await setQuotas(server.database, id, quotas);
  await waitUntil(() => server.health.current.isHealthy);
  const rest = (method: string, path: string, body?: unknown) =>
    server.rest(method, path, { key, ...(body === undefined ? {} : { body }) });
  const create = (name: string, query = '', more = {}) =>
    rest('POST', `/sandboxes${query}`, { name, ...IMAGE, ...more });
  return { ...people, id, key, member, rest, create };
}

test('quotas show the limits in force and what is used', async (t) => {
  const { rest, create, server, member, id } = await startAcme(t, {
    max_sandboxes: 10,
    included_vcpu_hours: 100,
  });
  await create('a', '?start=true&wait_for=running');
  await create('b', '?start=true&wait_for=running', { lifecycle: { ephemeral: true } });
  await create('c');
  await addSnapshot(server.database, id, 4096, '2026-01-01T00:00:00.000Z', null);
  const { status, body } = await rest('GET', '/quotas');
  assert.equal(status, 200);
  assert.partialDeepStrictEqual(body, {
    hard_cap: true,
    pool_exhausted: false,
    total_sandboxes: 3,
    concurrent_ephemeral_running: 1,
    concurrent_persistent_running: 1,
    snapshot_storage_bytes: 4096,
    is_suspended: false,
    max_sandboxes: 10,
    included_vcpu_hours: 100,
    max_vcpus_per_sandbox: null,
    max_uptime_minutes_per_sandbox: null,
  });
  assert.ok(body.vcpu_hours_used > 0 && body.memory_gib_hours_used > 0);
  const twin = await server.rest('GET', '/orgs/acme/quotas', { key: member.key });
  assert.deepEqual(Object.keys(twin.body), Object.keys(body));
});

test('of 100 creates at once over HTTP against a limit of 10, exactly 10 succeed', async (t) => {
  const { create, rest, eventTypes, id } = await startAcme(t, { max_sandboxes: 10 });
  const replies = await Promise.all(Array.from({ length: 100 }, (_, index) => create(`s${index}`)));
  assert.equal(replies.filter(({ status }) => status === 200).length, 10);
  const refused = replies.filter(({ status }) => status === 429);
  assert.equal(refused.length, 90);
  assert.deepEqual(refused[0]?.body.error, {
    code: 'quota_exceeded',
    message: refused[0]?.body.error.message,
    details: { limit: 'max_sandboxes', value: 11, maximum: 10 },
  });
  assert.equal((await rest('GET', '/quotas')).body.total_sandboxes, 10);
  const types = await eventTypes(id);
  assert.equal(types.filter((type) => type === 'quota_exceeded').length, 90);
  assert.equal(types.filter((type) => type === 'sandbox_created').length, 10);
});

test('room is free again when a sandbox is stopped, fails or is deleted', async (t) => {
  const { create, rest, server } = await startAcme(t, {
    max_concurrent_persistent_running: 1,
    max_sandboxes: 2,
  });
  const { body: a } = await create('a', '?start=true&wait_for=running');
  const { body: b } = await create('b');
  const start = async (id: string) => (await rest('POST', `/sandboxes/${id}/start?wait_for=running`)).status;
  const isIn = (id: string, state: string) => async () =>
    (await rest('GET', `/sandboxes/${id}`)).body.status === state;
  assert.equal(await start(b.id), 429);
  await rest('POST', `/sandboxes/${a.id}/stop`);
  assert.equal(await start(b.id), 200);
  await waitUntil(isIn(a.id, 'stopped'));
  assert.equal(await start(a.id), 429);
  server.orchestrator.end(b.id, 'oom', 'too much memory');
  await waitUntil(isIn(b.id, 'failed'));
  assert.equal(await start(a.id), 200);
  assert.equal((await create('c')).status, 429);
  await rest('DELETE', `/sandboxes/${b.id}`);
  assert.equal((await create('c')).status, 200);
});

test('a sandbox that is too large and an organization that is suspended are refused with what to do', async (t) => {
  const { create, server, id } = await startAcme(t, { max_vcpus_per_sandbox: 1 });
  const large = await create('a', '', { resources: { vcpus: 2 } });
  assert.equal(large.status, 429);
  assert.deepEqual(large.body.error.details, { limit: 'max_vcpus_per_sandbox', value: 2, maximum: 1 });
  assert.match(large.body.error.message, /ask for less/);
  await setQuotas(server.database, id, { is_suspended: true });
  const suspended = await create('a');
  assert.equal(suspended.body.error.details.limit, 'is_suspended');
});

test('the self-hosted surface keeps to the same limits', async (t) => {
  const { server, id, rest } = await startAcme(t, { max_sandboxes: 0 });
  const { signKey } = await import('../../access/signed-keys.ts');
  const { SIGNING_KEY } = await import('../../testing/people.ts');
  const bearer = await signKey(SIGNING_KEY, { namespace: 'acme', createdAt: new Date(), expiresAt: null });
  const { error } = await server.call(
    'sandbox.start',
    { sandbox: 'a', namespace: 'acme', config: { image: 'x' } },
    { headers: { authorization: `Bearer ${bearer}` } },
  );
  assert.match(error?.message ?? '', /max_sandboxes/);
  const [event, ...more] = (await rest('GET', '/events?event_type=quota_exceeded')).body.data;
  assert.deepEqual(more, []);
  assert.equal(event.actor.name, 'server key for acme');
  assert.deepEqual(event.payload, {
    operation: 'sandbox.start',
    limit: 'max_sandboxes',
    value: 1,
    maximum: 0,
  });
  const rows = await server.database
    .selectFrom('sandboxes')
    .where('organization_id', '=', id)
    .select('id')
    .execute();
  assert.deepEqual(rows, []);
});

test('a sandbox that ran for as long as it may is stopped, and the events say why', async (t) => {
  const { create, rest, server, id } = await startAcme(t);
  const { body: sandbox } = await create('a', '?start=true&wait_for=running');
  assert.equal(sandbox.status, 'running');
  await setQuotas(server.database, id, { max_uptime_minutes_per_sandbox: 0 });
  await waitUntil(async () => (await rest('GET', `/sandboxes/${sandbox.id}`)).body.status === 'stopped');
  const [event, ...more] = (await rest('GET', '/events?event_type=quota_exceeded')).body.data;
  assert.deepEqual(more, []);
  assert.partialDeepStrictEqual(event.payload, {
    sandbox_id: sandbox.id,
    limit: 'max_uptime_minutes_per_sandbox',
    value: 0,
    maximum: 0,
  });
  assert.equal(event.actor.kind, 'system');
  const [stopped] = (await rest('GET', '/events?event_type=sandbox_stopped')).body.data;
  assert.equal(stopped.actor.code, 'quota');
});

test('a pool that is used up on a plan without prices stops what runs and refuses starts', async (t) => {
  const { create, rest, server, id } = await startAcme(t);
  const { body: sandbox } = await create('a', '?start=true&wait_for=running');
  await setQuotas(server.database, id, { included_memory_gib_hours: 0 });
  await waitUntil(async () => (await rest('GET', `/sandboxes/${sandbox.id}`)).body.status === 'stopped');
  assert.equal((await rest('GET', '/quotas')).body.pool_exhausted, true);
  const refused = await rest('POST', `/sandboxes/${sandbox.id}/start`);
  assert.deepEqual([refused.status, refused.body.error.details.limit], [429, 'included_memory_gib_hours']);
});
