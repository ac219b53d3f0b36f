import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { appendEvent } from '../../store/events.ts';
import { startWithPeople } from '../../testing/people.ts';

async function startAcme(t: TestContext) {
  const people = await startWithPeople(t);
  const [admin, member] = await Promise.all(['admin', 'member'].map(people.person));
  assert.ok(admin && member);
  const id = await people.organization('acme', { admin, member });
  await people.organization('other', {});
  const key = await people.apiKey('acme');
  const { server } = people;
  const add = (type: 'image_pulled' | 'image_removed', payload: Record<string, unknown> = {}) =>
    server.database.transaction().execute((transaction) =>
      appendEvent(transaction, {
        organizationId: id,
        type,
        category: 'image',
        actor: { kind: 'api_key', api_key_id: 'k', name: 'ci' },
        payload,
        requestId: 'req-1',
        sourceAddress: '192.0.2.7',
      }),
    );
  const get = (path: string, by = key) => server.rest('GET', path, { key: by });
  return { ...people, id, key, admin, member, add, get };
}

test('events come newest first, with who did what from where', async (t) => {
  const { get, add, id, admin } = await startAcme(t);
  await add('image_pulled', { size: 1 });
  await add('image_removed');
  const { status, body } = await get('/events');
  assert.equal(status, 200);
  assert.deepEqual(
    [body.has_more, body.next_cursor, body.data.map((event: { event_type: string }) => event.event_type)],
    [false, null, ['image_removed', 'image_pulled']],
  );
  const [second, first] = body.data;
  assert.deepEqual(first, {
    id: first.id,
    org_id: id,
    sequence: 1,
    category: 'image',
    event_type: 'image_pulled',
    actor: { kind: 'api_key', api_key_id: 'k', name: 'ci' },
    payload: { size: 1 },
    request_id: 'req-1',
    source_address: '192.0.2.7',
    timestamp: first.timestamp,
    previous_hash: '',
    hash: first.hash,
  });
  assert.equal(second.previous_hash, first.hash);
  assert.deepEqual((await get('/orgs/acme/events', admin.key)).body, body);
  assert.deepEqual((await get(`/events/${first.id}`)).body, first);
  assert.deepEqual((await get(`/orgs/acme/events/${first.id.toUpperCase()}`, admin.key)).body, first);
});

test('pages neither skip nor repeat while events arrive', async (t) => {
  const { get, add } = await startAcme(t);
  for (let index = 0; index < 5; index++) await add('image_pulled', { index });
  const seen: number[] = [];
  let cursor = '';
  do {
    const { body } = await get(`/events?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
    seen.push(...body.data.map((event: { payload: { index: number } }) => event.payload.index));
    cursor = body.next_cursor ?? '';
    await add('image_pulled', { index: 100 + seen.length });
  } while (cursor !== '');
  assert.deepEqual(seen, [4, 3, 2, 1, 0]);
});

test('events are filtered by type and by time', async (t) => {
  const { get, add } = await startAcme(t);
  await add('image_pulled');
  await add('image_removed');
  const count = async (query: string) => (await get(`/events?${query}`)).body.data.length;
  const now = new Date().toISOString();
  assert.equal(await count('event_type=image_removed'), 1);
  assert.equal(await count('event_type=snapshot_created'), 0);
  assert.equal(await count(`until=${now}`), 2);
  assert.equal(await count('since=2999-01-01T00:00:00Z'), 0);
  assert.equal(await count(`since=2020-01-01T00:00:00%2B02:00&until=${now}&event_type=image_pulled`), 1);
});

test('a filter, cursor or page size that makes no sense is refused by name', async (t) => {
  const { get, add } = await startAcme(t);
  await add('image_pulled');
  const bad: readonly [string, string, string][] = [
    ['since=now', 'invalid_request', 'since'],
    ['until=2026-02-31T00:00:00Z', 'invalid_request', 'until'],
    ['since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z', 'invalid_request', 'since'],
    ['limit=0', 'invalid_request', 'limit'],
    ['limit=101', 'invalid_request', 'limit'],
    ['limit=ten', 'invalid_request', 'limit'],
    ['cursor=nonsense', 'invalid_cursor', 'cursor'],
    ['event_type=', 'invalid_request', 'event_type'],
    ['type=x', 'invalid_request', 'type'],
  ];
  for (const [query, code, field] of bad) {
    const { status, body } = await get(`/events?${query}`);
    assert.deepEqual([status, body.error.code, body.error.details.field], [400, code, field], query);
  }
});

test('an unknown event, or one of another organization, is not found', async (t) => {
  const { get, add, apiKey } = await startAcme(t);
  await add('image_pulled');
  const [event] = (await get('/events')).body.data;
  const other = await apiKey('other');
  assert.deepEqual((await get('/events', other)).body.data, []);
  for (const reply of [
    await get(`/events/${event.id}`, other),
    await get(`/events/${crypto.randomUUID()}`),
  ]) {
    assert.deepEqual([reply.status, reply.body.error.code], [404, 'event_not_found']);
  }
  const bad = await get('/events/1');
  assert.deepEqual([bad.status, bad.body.error.details.field], [400, 'event_id']);
});

test('audit events are for admins and owners', async (t) => {
  const { get, member, server, person } = await startAcme(t);
  assert.equal((await get('/orgs/acme/events', member.key)).status, 403);
  assert.equal((await get('/orgs/acme/events', (await person('stranger')).key)).status, 403);
  assert.equal((await server.rest('GET', '/events')).status, 401);
});
