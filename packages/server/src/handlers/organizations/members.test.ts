import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { test, type TestContext } from 'node:test';
import { startWithPeople } from '../../testing/people.ts';

async function startAcme(t: TestContext) {
  const people = await startWithPeople(t);
  const [owner, admin, member, outsider] = await Promise.all(['o', 'a', 'm', 's'].map(people.person));
  assert.ok(owner && admin && member && outsider);
  const id = await people.organization('acme', { owner, admin, member });
  const call = (method: string, path: string, key: string, body?: unknown) =>
    people.server.rest(method, path, { key, ...(body === undefined ? {} : { body }) });
  return { ...people, id, owner, admin, member, outsider, call };
}

test('members are listed in pages, for keys and for members, with the same fields', async (t) => {
  const { call, apiKey, member, owner } = await startAcme(t);
  const byUser = await call('GET', '/orgs/acme/members?limit=2', member.key);
  const byKey = await call('GET', '/members?limit=2', await apiKey('acme'));
  assert.deepEqual(byUser.body, byKey.body);
  assert.equal(byKey.body.has_more, true);
  const [first] = byKey.body.data;
  assert.deepEqual(first, {
    user_id: owner.id,
    email: owner.email,
    display_name: null,
    avatar_url: null,
    role: 'owner',
    joined_at: first.joined_at,
  });
  const rest = await call('GET', `/orgs/acme/members?cursor=${byUser.body.next_cursor}`, member.key);
  assert.deepEqual([rest.body.data.length, rest.body.has_more, rest.body.next_cursor], [1, false, null]);
  assert.equal(
    (await call('GET', '/orgs/acme/members?cursor=x', member.key)).body.error.code,
    'invalid_cursor',
  );
  assert.equal(
    (await call('GET', '/orgs/acme/members?limit=0', member.key)).body.error.details.field,
    'limit',
  );
});

test('role escalation: admins change roles below owner; owners change all; the last owner stays', async (t) => {
  const { call, owner, admin, member, outsider, eventTypes, id } = await startAcme(t);
  const path = (userId: string) => `/orgs/acme/members/${userId}`;
  assert.equal((await call('PATCH', path(admin.id), member.key, { role: 'member' })).status, 403);
  assert.equal((await call('PATCH', path(member.id), admin.key, { role: 'owner' })).status, 403);
  assert.equal((await call('PATCH', path(owner.id), admin.key, { role: 'member' })).status, 403);
  assert.equal(
    (await call('PATCH', path(outsider.id), admin.key, { role: 'member' })).body.error.code,
    'not_found',
  );
  assert.equal(
    (await call('PATCH', path(member.id), admin.key, { role: 'king' })).body.error.details.field,
    'role',
  );
  assert.equal(
    (await call('PATCH', path('x'), admin.key, { role: 'admin' })).body.error.details.field,
    'user_id',
  );
  const last = await call('PATCH', path(owner.id), owner.key, { role: 'admin' });
  assert.deepEqual([last.status, last.body.error.code], [409, 'invalid_request']);
  const promoted = await call('PATCH', path(member.id.toUpperCase()), admin.key, { role: 'admin' });
  assert.deepEqual([promoted.status, promoted.body.role, promoted.body.user_id], [200, 'admin', member.id]);
  assert.equal((await call('PATCH', path(admin.id), owner.key, { role: 'owner' })).body.role, 'owner');
  assert.equal((await call('PATCH', path(owner.id), owner.key, { role: 'member' })).body.role, 'member');
  assert.deepEqual(new Set(await eventTypes(id)), new Set(['member_role_changed']));
});

test('removing takes an admin, is never of yourself, and ends all access at once', async (t) => {
  const { call, owner, admin, member, eventTypes, id } = await startAcme(t);
  const path = (userId: string) => `/orgs/acme/members/${userId}`;
  assert.equal((await call('DELETE', path(admin.id), member.key)).status, 403);
  assert.equal((await call('DELETE', path(owner.id), admin.key)).status, 403);
  const self = await call('DELETE', path(admin.id), admin.key);
  assert.deepEqual([self.status, self.body.error.details.field], [400, 'user_id']);
  assert.equal((await call('DELETE', path(owner.id), owner.key)).status, 400);
  assert.equal((await call('DELETE', path(member.id), admin.key)).status, 200);
  assert.equal((await call('DELETE', path(member.id), admin.key)).body.error.code, 'not_found');
  assert.equal((await call('GET', '/orgs/acme', member.key)).status, 403);
  assert.deepEqual(await eventTypes(id), ['member_removed']);
});

test('a request whose caller loses its permission before the end does nothing', async (t) => {
  const { server, call, owner, admin, member, person } = await startAcme(t);
  const friend = await person('friend');
  /** Its head is sent and it is let in; its body is kept back. */
  const begin = async (method: string, path: string, key: string, body: object) => {
    const text = JSON.stringify(body);
    const request = httpRequest(`${server.url}/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': text.length,
      },
    });
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    request.write(text.slice(0, 1));
    // By the time that another one was answered.
    await call('GET', '/orgs/acme', owner.key);
    return async () => {
      request.end(text.slice(1));
      const [answer] = await answered;
      answer.resume();
      return answer.statusCode;
    };
  };
  const { body: made } = await call('POST', '/orgs/acme/api-keys', admin.key, { name: 'ci' });
  const finishers = [
    await begin('PATCH', `/orgs/acme/members/${member.id}`, admin.key, { role: 'admin' }),
    await begin('POST', '/orgs/acme/invites', admin.key, { email: friend.email }),
    await begin('POST', '/volumes', made.key, { name: 'late' }),
  ];
  await call('DELETE', `/orgs/acme/api-keys/${made.id}`, owner.key);
  await call('DELETE', `/orgs/acme/members/${admin.id}`, owner.key);
  assert.deepEqual(await Promise.all(finishers.map((finish) => finish())), [403, 403, 401]);
  assert.deepEqual((await call('GET', '/orgs/acme/invites', owner.key)).body, []);
  const { body: members } = await call('GET', '/orgs/acme/members', owner.key);
  const roles = (members.data as { role: string }[]).map(({ role }) => role);
  assert.deepEqual(roles.toSorted(), ['member', 'owner']);
});

test('an invite is inspected with its token alone, for as long as it can be accepted', async (t) => {
  const { server, call, owner, admin, person } = await startAcme(t);
  const friend = await person('friend');
  const body = { email: friend.email, role: 'member' };
  const { body: invite } = await call('POST', '/orgs/acme/invites', admin.key, body);
  const inspect = async (token: string) => await server.rest('GET', `/invites/${token}`, {});
  const seen = await inspect(invite.token);
  assert.equal(seen.status, 200);
  assert.deepEqual(seen.body, {
    organization: { slug: 'acme', name: seen.body.organization.name },
    invited_by: { display_name: null, email: admin.email },
    email: friend.email,
    role: 'member',
    expires_at: invite.expires_at,
  });
  assert.equal((await inspect('made-up')).body.error.details.field, 'token');
  await call('PATCH', `/orgs/acme/members/${admin.id}`, owner.key, { role: 'member' });
  assert.equal((await inspect(invite.token)).status, 400, 'it is void');
});

test('a removed member keeps no access: their keys have the role of a member, their invites are void', async (t) => {
  const { call, owner, admin, person, session: sessionOf } = await startAcme(t);
  const { body: made } = await call('POST', '/orgs/acme/api-keys', admin.key, { name: 'ci' });
  const session = await sessionOf(admin.id);
  const [friend, other] = [await person('friend'), await person('other')];
  const invite = async (email: string) =>
    (await call('POST', '/orgs/acme/invites', admin.key, { email, role: 'admin' })).body;
  const [ofFriend, ofOther] = [await invite(friend.email), await invite(other.email)];
  assert.equal((await call('GET', '/orgs/acme/quotas', session)).status, 200);
  assert.equal((await call('GET', '/events', made.key)).status, 200);
  // A demotion is enough for the invite; the removal takes the rest.
  await call('PATCH', `/orgs/acme/members/${admin.id}`, owner.key, { role: 'member' });
  assert.equal((await call('POST', `/invites/${ofFriend.token}/accept`, friend.key)).status, 400);
  const removed = await call('DELETE', `/orgs/acme/members/${admin.id}`, owner.key);
  assert.match(removed.body.message, /1 API key that they made still works/);
  for (const key of [admin.key, session]) {
    assert.equal((await call('GET', '/orgs/acme/quotas', key)).status, 403);
    assert.deepEqual((await call('GET', '/orgs', key)).body, []);
  }
  assert.equal((await call('POST', `/invites/${ofOther.token}/accept`, other.key)).status, 400);
  assert.deepEqual((await call('GET', '/orgs/acme/invites', owner.key)).body, []);
  // The key is the organization's, until it is revoked.
  assert.equal((await call('GET', '/sandboxes', made.key)).status, 200);
  assert.equal((await call('GET', '/events', made.key)).status, 403);
  assert.equal((await call('DELETE', `/orgs/acme/api-keys/${made.id}`, owner.key)).status, 200);
  assert.equal((await call('GET', '/sandboxes', made.key)).status, 401);
  const [event] = (await call('GET', '/orgs/acme/events?event_type=member_removed', owner.key)).body.data;
  assert.deepEqual([event.payload.api_keys_left, event.payload.invites_withdrawn], [1, 2]);
});

test('invite reuse: an invited person accepts once, with the address that was invited', async (t) => {
  const { call, owner, admin, member, outsider, person, eventTypes, id } = await startAcme(t);
  const guest = await person('guest');
  const invite = (key: string, body: object) => call('POST', '/orgs/acme/invites', key, body);
  assert.equal((await invite(member.key, { email: guest.email })).status, 403);
  assert.equal((await invite(admin.key, { email: guest.email, role: 'owner' })).status, 403);
  assert.equal((await invite(admin.key, { email: 'no-address' })).body.error.details.field, 'email');
  const already = await invite(admin.key, { email: member.email.toUpperCase() });
  assert.deepEqual([already.status, already.body.error.code], [409, 'invalid_request']);
  const first = await invite(admin.key, { email: guest.email });
  const second = await invite(owner.key, { email: guest.email, role: 'admin' });
  assert.deepEqual([first.status, second.body.role, second.body.invited_by], [200, 'admin', owner.id]);
  const { body: listed } = await call('GET', '/orgs/acme/invites', admin.key);
  assert.deepEqual([listed.length, 'token' in listed[0]], [1, false]);
  assert.equal((await call('GET', '/orgs/acme/invites', member.key)).status, 403);
  const accept = (token: string, key: string) => call('POST', `/invites/${token}/accept`, key);
  assert.equal((await accept(first.body.token, guest.key)).status, 400);
  assert.equal((await accept(second.body.token, outsider.key)).status, 403);
  assert.equal((await accept(second.body.token, 'svc_pat_x')).status, 401);
  const joined = await accept(second.body.token, guest.key);
  assert.deepEqual([joined.status, joined.body.slug, joined.body.role], [200, 'acme', 'admin']);
  assert.equal((await accept(second.body.token, guest.key)).status, 400);
  assert.equal((await call('GET', '/orgs/acme', guest.key)).body.role, 'admin');
  assert.deepEqual(await eventTypes(id), ['member_invited', 'member_invited', 'member_joined']);
});

test('an invite can be declined, withdrawn, and expires', async (t) => {
  const { call, server, admin, person, eventTypes, id } = await startAcme(t);
  const guest = await person('guest');
  const invite = async () =>
    (await call('POST', '/orgs/acme/invites', admin.key, { email: guest.email })).body;
  const declined = await invite();
  assert.equal((await call('POST', `/invites/${declined.token}/decline`, admin.key)).status, 403);
  assert.equal((await call('POST', `/invites/${declined.token}/decline`, guest.key)).status, 200);
  assert.equal((await call('POST', `/invites/${declined.token}/decline`, guest.key)).status, 400);
  const withdrawn = await invite();
  assert.equal((await call('DELETE', `/orgs/acme/invites/${withdrawn.id}`, admin.key)).status, 200);
  assert.equal(
    (await call('DELETE', `/orgs/acme/invites/${withdrawn.id}`, admin.key)).body.error.code,
    'not_found',
  );
  assert.equal((await call('POST', `/invites/${withdrawn.token}/accept`, guest.key)).status, 400);
  const expired = await invite();
  await server.database.updateTable('invites').set({ expires_at: '2026-01-01T00:00:00.000Z' }).execute();
  const late = await call('POST', `/invites/${expired.token}/accept`, guest.key);
  assert.deepEqual([late.status, late.body.error.details.field], [400, 'token']);
  assert.deepEqual(await eventTypes(id), [
    'member_invited',
    'invite_declined',
    'member_invited',
    'invite_withdrawn',
    'member_invited',
  ]);
});

test('the token of an invite is shown once, also under one idempotency key', async (t) => {
  const { server, admin } = await startAcme(t);
  const request = {
    key: admin.key,
    body: { email: 'guest@example.com' },
    headers: { 'idempotency-key': 'once' },
  };
  const first = await server.rest('POST', '/orgs/acme/invites', request);
  const second = await server.rest('POST', '/orgs/acme/invites', request);
  assert.equal(typeof first.body.token, 'string');
  assert.deepEqual(second.body, { ...first.body, token: null });
  assert.equal(second.headers.get('idempotency-replayed'), 'true');
});
