import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startWithPeople } from '../../testing/people.ts';

test('a user sees and changes themselves; null removes a field', async (t) => {
  const { server, person, organization, eventTypes } = await startWithPeople(t);
  const ann = await person('ann');
  const id = await organization('acme', { member: ann });
  const me = await server.rest('GET', '/users/me', { key: ann.key });
  assert.deepEqual(Object.keys(me.body).toSorted(), [
    'avatar_url',
    'created_at',
    'display_name',
    'email',
    'id',
    'updated_at',
  ]);
  const patch = (body: object) => server.rest('PATCH', '/users/me', { key: ann.key, body });
  const changed = await patch({ display_name: 'Ann', avatar_url: 'https://example.com/a.png' });
  assert.deepEqual(
    [changed.body.display_name, changed.body.avatar_url],
    ['Ann', 'https://example.com/a.png'],
  );
  assert.equal((await patch({ avatar_url: null })).body.avatar_url, null);
  assert.equal((await patch({})).body.display_name, 'Ann');
  for (const [body, field] of [
    [{ display_name: '' }, 'display_name'],
    [{ display_name: ' x' }, 'display_name'],
    [{ avatar_url: 'http://example.com' }, 'avatar_url'],
    [{ avatar_url: 'javascript:alert(1)' }, 'avatar_url'],
    [{ email: 'x@y' }, 'email'],
  ] as const) {
    const refused = await patch(body);
    assert.deepEqual([refused.status, refused.body.error.details.field], [400, field], JSON.stringify(body));
  }
  assert.deepEqual(new Set(await eventTypes(id)), new Set(['user_updated']));
});

test('a user deletes themselves with their address as confirmation, unless an organization would be left without owner', async (t) => {
  const { server, person, organization, eventTypes, session: sessionOf } = await startWithPeople(t);
  const [ann, bob] = await Promise.all(['ann', 'bob'].map(person));
  assert.ok(ann && bob);
  const id = await organization('acme', { owner: ann, admin: bob });
  const remove = (key: string, confirm: string) =>
    server.rest('DELETE', '/users/me', { key, body: { confirm } });
  assert.equal((await remove(ann.key, 'bob@example.com')).body.error.details.field, 'confirm');
  const sole = await remove(ann.key, ann.email);
  assert.deepEqual([sole.status, sole.body.error.details.organization], [409, 'acme']);
  assert.deepEqual(await eventTypes(id), []);
  await server.rest('PATCH', `/orgs/acme/members/${bob.id}`, { key: ann.key, body: { role: 'owner' } });
  const session = await sessionOf(ann.id);
  const key = { name: 'x' };
  const { body: apiKey } = await server.rest('POST', '/orgs/acme/api-keys', { key: ann.key, body: key });
  assert.equal((await remove(ann.key, 'ANN@example.com')).status, 200);
  assert.equal((await server.rest('GET', '/users/me', { key: ann.key })).status, 401);
  assert.equal((await server.rest('GET', '/users/me', { key: session })).status, 401);
  assert.equal((await server.rest('GET', '/me/org', { key: apiKey.key })).status, 200);
  const { body: members } = await server.rest('GET', '/orgs/acme/members', { key: bob.key });
  assert.deepEqual(
    members.data.map(({ email }: { email: string }) => email),
    [bob.email],
  );
  assert.equal((await eventTypes(id)).at(-1), 'member_removed');
});
