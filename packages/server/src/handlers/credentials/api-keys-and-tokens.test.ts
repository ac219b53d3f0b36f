import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { startWithPeople } from '../../testing/people.ts';

const HOUR_MS = 3_600_000;
const inOneHour = () => new Date(Date.now() + HOUR_MS).toISOString();

test('an API key is shown once, works, is listed without its secret, and is worthless once revoked', async (t) => {
  const { server, person, organization, eventTypes } = await startWithPeople(t);
  const member = await person('m');
  const id = await organization('acme', { member });
  const expiresAt = inOneHour();
  const request = {
    key: member.key,
    body: { name: 'ci', expires_at: expiresAt },
    headers: { 'idempotency-key': 'k' },
  };
  const { status, body: made } = await server.rest('POST', '/orgs/acme/api-keys', request);
  assert.equal(status, 200);
  assert.match(made.key, /^svc_[0-9a-f]{64}$/);
  assert.deepEqual([made.name, made.expires_at, made.created_by], ['ci', expiresAt, member.id]);
  assert.equal(made.prefix, made.key.slice(-8));
  const replay = await server.rest('POST', '/orgs/acme/api-keys', request);
  assert.deepEqual(replay.body, { ...made, key: null });
  assert.equal((await server.rest('GET', '/me/org', { key: made.key })).body.id, id);
  const { body: page } = await server.rest('GET', '/orgs/acme/api-keys', { key: member.key });
  assert.deepEqual([page.data.length, page.has_more, 'key' in page.data[0]], [1, false, false]);
  const path = `/orgs/acme/api-keys/${made.id}`;
  assert.equal((await server.rest('DELETE', path, { key: member.key })).status, 200);
  assert.equal((await server.rest('GET', '/me/org', { key: made.key })).status, 401);
  assert.equal((await server.rest('DELETE', path, { key: member.key })).body.error.code, 'not_found');
  assert.deepEqual((await server.rest('GET', '/orgs/acme/api-keys', { key: member.key })).body.data, []);
  assert.deepEqual(await eventTypes(id), ['api_key_created', 'api_key_revoked']);
});

test('members see and revoke the keys that they made, admins all of them', async (t) => {
  const { server, person, organization, apiKey } = await startWithPeople(t);
  const [admin, member] = await Promise.all(['a', 'm'].map(person));
  assert.ok(admin && member);
  await organization('acme', { admin, member });
  await organization('other', { admin });
  await apiKey('acme');
  const create = async (key: string) =>
    (await server.rest('POST', '/orgs/acme/api-keys', { key, body: { name: 'x' } })).body;
  const [ofAdmin, ofMember] = [await create(admin.key), await create(member.key)];
  const list = async (key: string, query = '') =>
    (await server.rest('GET', `/orgs/acme/api-keys${query}`, { key })).body;
  assert.deepEqual(
    (await list(member.key)).data.map(({ id }: { id: string }) => id),
    [ofMember.id],
  );
  const first = await list(admin.key, '?limit=2');
  const second = await list(admin.key, `?limit=2&cursor=${first.next_cursor}`);
  assert.equal(new Set([...first.data, ...second.data].map(({ id }) => id)).size, 3);
  assert.equal(second.has_more, false);
  const revoke = async (key: string, id: string, slug = 'acme') =>
    (await server.rest('DELETE', `/orgs/${slug}/api-keys/${id}`, { key })).status;
  assert.equal(await revoke(member.key, ofAdmin.id), 404);
  assert.equal(await revoke(admin.key, ofMember.id, 'other'), 404);
  assert.equal(await revoke(admin.key, ofMember.id), 200);
});

test('a key opens no more than the role of the member who made it', async (t) => {
  const { server, person, organization } = await startWithPeople(t);
  const [admin, member] = await Promise.all(['a', 'm'].map(person));
  assert.ok(admin && member);
  await organization('acme', { admin, member });
  const statusesOf = async ({ key }: { readonly key: string }) => {
    const made = await server.rest('POST', '/orgs/acme/api-keys', { key, body: { name: 'x' } });
    const paths = ['/sandboxes', '/events', '/webhooks'];
    return await Promise.all(paths.map(async (path) => (await server.rest('GET', path, made.body)).status));
  };
  assert.deepEqual(await statusesOf(admin), [200, 200, 200]);
  assert.deepEqual(await statusesOf(member), [200, 403, 403]);
});

test('an expiry in the past, or that is no date, is 400; an expired credential is 401', async (t) => {
  const { server, person, organization, apiKey } = await startWithPeople(t);
  const member = await person('m');
  await organization('acme', { member });
  for (const path of ['/orgs/acme/api-keys', '/users/me/pats']) {
    const never = [
      '2999-13-45T00:00:00Z',
      '2999-02-30T00:00:00Z',
      '9999-12-31T23:59:59-12:00',
      'tomorrow',
      7,
    ];
    for (const expires of ['2020-01-01T00:00:00Z', ...never]) {
      const body = { name: 'x', expires_at: expires };
      const { status, body: answer } = await server.rest('POST', path, { key: member.key, body });
      assert.equal(status, 400);
      assert.equal(answer.error.details.field, 'expires_at', String(expires));
    }
    const noName = await server.rest('POST', path, { key: member.key, body: {} });
    assert.equal(noName.body.error.details.field, 'name');
  }
  const expired = await apiKey('acme', '2026-01-01T00:00:00.000Z');
  assert.equal((await server.rest('GET', '/me/org', { key: expired })).status, 401);
  const offset = new Date(Date.now() + HOUR_MS).toISOString().replace('Z', '+02:00');
  const body = { name: 'x', expires_at: offset };
  const made = await server.rest('POST', '/users/me/pats', { key: member.key, body });
  assert.equal(made.status, 400, 'an hour from now in a zone two hours ahead is over');
});

test('a personal access token works until it is revoked, and each organization of the user hears of it', async (t) => {
  const { server, person, organization, eventTypes } = await startWithPeople(t);
  const ann = await person('ann');
  const bob = await person('bob');
  const ids = [await organization('one', { member: ann }), await organization('two', { owner: ann })];
  const elsewhere = await organization('three', { owner: bob });
  const create = await server.rest('POST', '/users/me/pats', { key: ann.key, body: { name: 'laptop' } });
  const { id, token, prefix, expires_at: expiresAt } = create.body;
  assert.match(token, /^svc_pat_[0-9a-f]{64}$/);
  assert.deepEqual([prefix, expiresAt], [token.slice(-8), null]);
  assert.equal((await server.rest('GET', '/users/me', { key: token })).body.id, ann.id);
  const { body: listed } = await server.rest('GET', '/users/me/pats', { key: token });
  assert.deepEqual([listed.length, listed[0].id, 'token' in listed[0]], [2, id, false]);
  assert.equal((await server.rest('DELETE', `/users/me/pats/${id}`, { key: bob.key })).status, 404);
  assert.equal((await server.rest('DELETE', `/users/me/pats/${id}`, { key: token })).status, 200);
  assert.equal((await server.rest('DELETE', `/users/me/pats/${id}`, { key: ann.key })).status, 404);
  assert.equal((await server.rest('GET', '/users/me', { key: token })).status, 401);
  for (const organizationId of ids) {
    assert.deepEqual(await eventTypes(organizationId), ['token_created', 'token_revoked']);
  }
  assert.deepEqual(await eventTypes(elsewhere), []);
});

test('the time of the last use is noted, once a minute', async (t) => {
  const { server, person, organization, apiKey } = await startWithPeople(t);
  const admin = await person('a');
  await organization('acme', { admin });
  const key = await apiKey('acme');
  const lastUsed = async (table: 'api_keys' | 'tokens') =>
    (await server.database.selectFrom(table).select('last_used_at').executeTakeFirstOrThrow()).last_used_at;
  await server.rest('GET', '/me/org', { key });
  await server.rest('GET', '/users/me', { key: admin.key });
  await waitUntil(async () => (await lastUsed('api_keys')) !== null && (await lastUsed('tokens')) !== null);
  const noted = await lastUsed('api_keys');
  await server.rest('GET', '/me/org', { key });
  const older = new Date(Date.now() - 61_000).toISOString();
  await server.database.updateTable('tokens').set({ last_used_at: older }).execute();
  await server.rest('GET', '/users/me', { key: admin.key });
  await waitUntil(async () => (await lastUsed('tokens')) !== older);
  assert.equal(await lastUsed('api_keys'), noted);
});
