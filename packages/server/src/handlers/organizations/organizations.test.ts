import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { signKey } from '../../access/signed-keys.ts';
import { signSession } from '../../access/sessions.ts';
import { recordKey } from '../../store/signed-keys.ts';
import { startTestServer } from '../../testing/test-server.ts';
import { SIGNING_KEY, startWithPeople } from '../../testing/people.ts';

test('an API key says which organization it is for, as owner', async (t) => {
  const { server, organization, apiKey } = await startWithPeople(t);
  const id = await organization('acme', {});
  const { status, body } = await server.rest('GET', '/me/org', { key: await apiKey('acme') });
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body).toSorted(), [
    'created_at',
    'id',
    'is_suspended',
    'mfa_required',
    'name',
    'plan',
    'role',
    'slug',
    'updated_at',
  ]);
  assert.deepEqual([body.id, body.slug, body.role], [id, 'acme', 'owner']);
});

test('in development mode everybody is the owner of default', async (t) => {
  const server = await startTestServer(t);
  const missing = await server.rest('GET', '/orgs/nowhere/sandboxes');
  assert.deepEqual([missing.status, missing.body.error.code], [404, 'org_not_found']);
  assert.equal((await server.rest('GET', '/me/org')).body.slug, 'default');
  const orgs = (await server.rest('GET', '/orgs')).body;
  assert.deepEqual([orgs[0].slug, orgs[0].role], ['default', 'owner']);
  const removed = await server.rest('DELETE', '/orgs/default', { body: { confirm: 'default' } });
  assert.equal(removed.status, 200);
  const again = await server.rest('GET', '/orgs/default');
  assert.equal(again.status, 200);
  assert.notEqual(again.body.id, orgs[0].id);
});

test('a user makes an organization, owns it and finds it in their list', async (t) => {
  const { server, person, eventTypes } = await startWithPeople(t);
  const ann = await person('ann');
  const made = await server.rest('POST', '/orgs', { key: ann.key, body: { name: 'Äcme & Söhne' } });
  assert.equal(made.status, 200);
  assert.equal(made.body.slug, 'acme-sohne');
  assert.equal('role' in made.body, false);
  const { body: list } = await server.rest('GET', '/orgs', { key: ann.key });
  assert.deepEqual(
    list.map(({ slug, role }: { slug: string; role: string }) => [slug, role]),
    [['acme-sohne', 'owner']],
  );
  assert.deepEqual(await eventTypes(made.body.id), ['org_created']);
  const { body: other } = await server.rest('GET', '/orgs', { key: (await person('bob')).key });
  assert.deepEqual(other, []);
});

test('a slug that is taken is 409, one that breaks the rule is 400 naming it', async (t) => {
  const { server, person } = await startWithPeople(t);
  const { key } = await person('ann');
  await recordKey(server.database, 'svc_x', { namespace: 'ci', createdAt: '', expiresAt: null });
  const create = async (body: object) => (await server.rest('POST', '/orgs', { key, body })).body.error;
  assert.equal(await create({ name: 'Acme', slug: 'acme' }), undefined);
  for (const slug of ['acme', 'ci', 'default']) {
    assert.equal((await create({ name: 'x', slug })).code, 'name_already_exists', slug);
  }
  for (const slug of ['', 'A', 'a_b', '-a', 'a--b', 'a'.repeat(64), '*', '~x', 7]) {
    const error = await create({ name: 'x', slug });
    assert.deepEqual([error.code, error.details.field], ['invalid_request', 'slug'], String(slug));
  }
  assert.equal((await create({ name: '' })).details.field, 'name');
  assert.equal((await create({ name: 'a\u0000b' })).details.field, 'name');
  assert.equal((await create({ name: '☃' })).details.field, 'slug');
  assert.equal((await create({ name: 'x', colour: 'red' })).details.field, 'colour');
});

test('admins change an organization, members look, and others learn nothing', async (t) => {
  const { server, person, organization, eventTypes } = await startWithPeople(t);
  const [owner, admin, member, outsider] = await Promise.all(['o', 'a', 'm', 's'].map(person));
  assert.ok(owner && admin && member && outsider);
  const id = await organization('acme', { owner, admin, member });
  await organization('other', {});
  const patch = (key: string, body: object, slug = 'acme') =>
    server.rest('PATCH', `/orgs/${slug}`, { key, body });
  assert.equal((await patch(member.key, { name: 'x' })).status, 403);
  assert.equal((await server.rest('GET', '/orgs/acme', { key: member.key })).body.role, 'member');
  const refused = await server.rest('GET', '/orgs/acme', { key: outsider.key });
  const missing = await server.rest('GET', '/orgs/nowhere', { key: outsider.key });
  assert.deepEqual([refused.status, missing.status], [403, 403]);
  assert.equal(
    refused.body.error.message.replace('acme', ''),
    missing.body.error.message.replace('nowhere', ''),
  );
  assert.equal((await patch(admin.key, { slug: 'other' })).body.error.code, 'name_already_exists');
  const factor = await patch(admin.key, { name: 'Never', mfa_required: true });
  assert.deepEqual([factor.status, factor.body.error.details.field], [400, 'mfa_required']);
  assert.match(factor.body.error.message, /by a user with a second factor; turn on yours first/);
  const changed = await patch(admin.key, { name: 'Acme Inc', slug: 'acme2', mfa_required: false });
  assert.deepEqual(
    [changed.body.name, changed.body.slug, changed.body.mfa_required],
    ['Acme Inc', 'acme2', false],
  );
  assert.equal((await server.rest('GET', '/orgs/acme', { key: owner.key })).status, 403);
  assert.equal((await patch(owner.key, {}, 'acme2')).status, 200);
  assert.deepEqual(await eventTypes(id), ['org_updated', 'org_updated']);
});

test('only an owner deletes an organization, and only with its slug as confirmation', async (t) => {
  const { server, person, organization, apiKey, eventTypes } = await startWithPeople(t);
  const [owner, admin] = await Promise.all(['o', 'a'].map(person));
  assert.ok(owner && admin);
  const id = await organization('acme', { owner, admin });
  const key = await apiKey('acme');
  const remove = (caller: string, body?: object) =>
    server.rest('DELETE', '/orgs/acme', { key: caller, body });
  assert.equal((await remove(admin.key, { confirm: 'acme' })).status, 403);
  assert.equal((await remove(owner.key, { confirm: 'Acme' })).body.error.details.field, 'confirm');
  assert.equal((await remove(owner.key)).body.error.details.field, 'confirm');
  const removed = await remove(owner.key, { confirm: 'acme' });
  assert.deepEqual([removed.status, Object.keys(removed.body)], [200, ['message']]);
  assert.deepEqual(await eventTypes(id), ['org_deleted']);
  assert.equal((await remove(owner.key, { confirm: 'acme' })).status, 403);
  assert.equal((await server.rest('GET', '/me/org', { key })).status, 401);
  assert.deepEqual((await server.rest('GET', '/orgs', { key: owner.key })).body, []);
});

test('a deleted organization wants its sandboxes and volumes removed, ends their runs, and says so', async (t) => {
  const { server, person, organization, apiKey, eventTypes } = await startWithPeople(t);
  const owner = await person('o');
  const id = await organization('acme', { owner });
  const key = await apiKey('acme');
  const start = { sandbox: 'web', namespace: 'acme', config: { image: 'x' } };
  const started = await server.call('sandbox.start', start, { headers: { authorization: key } });
  assert.equal(started.error, undefined);
  assert.equal((await server.rest('GET', '/volumes/default', { key })).status, 200);
  await server.rest('DELETE', '/orgs/acme', { key: owner.key, body: { confirm: 'acme' } });
  const { database, orchestrator } = server;
  const sandbox = await database.selectFrom('sandboxes').selectAll().executeTakeFirstOrThrow();
  assert.deepEqual([sandbox.desired, sandbox.removed_at === null], ['removed', false]);
  const run = await database.selectFrom('runs').selectAll().executeTakeFirstOrThrow();
  assert.notEqual(run.ended_at, null);
  await waitUntil(async () => (await orchestrator.list()).length === 0, 'the removal of the sandbox');
  await waitUntil(async () => {
    const volume = await database.selectFrom('volumes').selectAll().executeTakeFirstOrThrow();
    return volume.status === 'deleting' && volume.removed_at !== null;
  }, 'the removal of the volume');
  const types = await eventTypes(id);
  assert.equal(types.at(-1), 'org_deleted');
  assert.ok(types.includes('sandbox_deleted') && types.includes('volume_deleted'), types.join(' '));
});

test('a call that was let in before its organization was deleted makes nothing in it any more', async (t) => {
  const { server, person, organization, apiKey } = await startWithPeople(t);
  const owner = await person('o');
  await organization('acme', { owner });
  const { database } = server;
  const headers = { authorization: `Bearer ${await apiKey('acme')}`, 'content-type': 'application/json' };
  const late = request(`${server.url}/v1/volumes`, { method: 'POST', headers });
  late.flushHeaders();
  // Noted once the key was found good; the body is read after that.
  await waitUntil(async () => {
    const key = await database.selectFrom('api_keys').select('last_used_at').executeTakeFirstOrThrow();
    return key.last_used_at !== null;
  }, 'the use of the key');
  await server.rest('DELETE', '/orgs/acme', { key: owner.key, body: { confirm: 'acme' } });
  const answered = once(late, 'response') as Promise<[IncomingMessage]>;
  late.end(JSON.stringify({ name: 'data' }));
  const [answer] = await answered;
  const { error } = (await json(answer)) as { error: { code: string } };
  // Looked at once more when the body had come, and its key went with the organization.
  assert.deepEqual([answer.statusCode, error.code], [401, 'invalid_api_key']);
  assert.deepEqual(await database.selectFrom('volumes').select('name').execute(), []);
});

test('the slug of a sandbox can be checked and suggested', async (t) => {
  const { server, person, organization } = await startWithPeople(t);
  const member = await person('m');
  await organization('acme', { member });
  const get = async (path: string) =>
    (await server.rest('GET', `/orgs/acme/sandbox-slug${path}`, member)).body;
  assert.deepEqual(await get('/check?sandbox_slug=brave-fox'), {
    sandbox_slug: 'brave-fox',
    valid: true,
    available: true,
    reason: null,
  });
  const bad = await get('/check?sandbox_slug=Bad_Slug');
  assert.deepEqual([bad.valid, bad.available, typeof bad.reason], [false, false, 'string']);
  assert.equal((await get('/check')).error.details.field, 'sandbox_slug');
  const { sandbox_slug: suggested } = await get('/suggest');
  assert.equal((await get(`/check?sandbox_slug=${suggested}`)).available, true);
});

test('keys and users do not reach each other’s addresses, and a session is as good as a token', async (t) => {
  const { server, person, organization, apiKey, session: sessionOf } = await startWithPeople(t);
  const member = await person('m');
  await organization('acme', { member });
  const key = await apiKey('acme');
  const status = async (path: string, credential: string) =>
    (await server.rest('GET', path, { key: credential })).status;
  assert.equal(await status('/me/org', member.key), 401);
  assert.equal(await status('/orgs', key), 401);
  assert.equal(await status('/orgs/acme', key), 401);
  assert.equal(await status('/users/me', key), 401);
  const session = await sessionOf(member.id);
  assert.equal(await status('/orgs/acme', session), 200);
  assert.equal(await status('/me/org', session), 401);
  const claims = {
    id: randomUUID(),
    userId: member.id,
    expiresAt: new Date(Date.now() + 60_000).toISOString(),
  };
  // Signed by us but never begun, expired, and signed with another key.
  assert.equal(await status('/orgs/acme', await signSession(SIGNING_KEY, claims)), 401);
  const expiresAt = new Date(Date.now() - 60_000).toISOString();
  assert.equal(await status('/orgs/acme', await signSession(SIGNING_KEY, { ...claims, expiresAt })), 401);
  assert.equal(await status('/orgs/acme', await signSession(new Uint8Array(32), claims)), 401);
  const signed = await signKey(SIGNING_KEY, { namespace: 'acme', createdAt: new Date(), expiresAt: null });
  assert.equal(await status('/me/org', signed), 200);
  assert.equal(await status('/orgs/acme', signed), 401);
  assert.equal(await status('/orgs/acme', signed.slice(4)), 401);
});

test('a user without an organization gets an error that lists the available ones', async (t) => {
  const { server, person, organization } = await startWithPeople(t);
  const member = await person('m');
  const ask = async () => (await server.rest('GET', '/sandboxes', { key: member.key })).body.error;
  assert.match(String((await ask()).details?.['reason']), /you belong to none yet/);
  await organization('acme', { member });
  const { code, message, details } = await ask();
  assert.deepEqual([code, message], ['invalid_api_key', 'unauthorized']);
  assert.partialDeepStrictEqual(details, { missing: 'organization', yours: ['acme'] });
  assert.match(String(details?.['reason']), /none was named \(yours: acme\); name it by SVC_ORG/);
});

test('in development mode every namespace is open, also those that JSON-RPC made', async (t) => {
  const server = await startTestServer(t);
  await waitUntil(() => server.health.current.isHealthy);
  await server.call('sandbox.start', { sandbox: 'a', namespace: 'My_team', config: { image: 'x' } });
  const { body: organizations } = await server.rest('GET', '/orgs');
  assert.deepEqual(
    organizations.map(({ slug }: { slug: string }) => slug),
    ['My_team', 'default'],
  );
  const { body: page } = await server.rest('GET', '/orgs/My_team/sandboxes');
  assert.deepEqual(
    page.data.map(({ name }: { name: string }) => name),
    ['a'],
  );
  assert.deepEqual((await server.rest('GET', '/sandboxes')).body.data, [], 'without a name it is default');
  assert.equal((await server.rest('GET', '/orgs/nobodys/sandboxes')).status, 404);
  assert.equal((await server.rest('DELETE', '/orgs/My_team/sandboxes/by-name/a')).status, 200);
  await waitUntil(async () => (await server.orchestrator.list()).length === 0, 'its removal');
});
