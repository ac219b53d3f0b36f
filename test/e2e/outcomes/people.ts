import assert from 'node:assert/strict';
import { changeStore } from '../../../packages/server/src/local-commands/local-store.ts';
import { putInvite } from '../../../packages/server/src/store/invites.ts';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Call, type Reply, type World } from './world.ts';

type Body = Reply['body'];
const MAX_INVITES = 1000;

/** Organizations, who belongs to them, and users themselves. */
export const people = new Outcomes();

people.phase('organizations, members, invites and users');

people.add('organizations.own', 'ok', async (call, { acme }) => {
  const reply = await call('organizations.own');
  assert.equal(reply.body.slug, acme.slug);
  return reply;
});
people.add('organizations.list', 'ok', async (call, { acme }) => {
  const reply = await call('organizations.list');
  assert.ok(reply.body.some(({ slug, role }: Body) => slug === acme.slug && role === 'owner'));
  return reply;
});
people.add('organizations.get', 'ok', async (call, { acme }) => {
  const reply = await call('organizations.get');
  assert.deepEqual([reply.body.slug, reply.body.role], [acme.slug, 'owner']);
  return reply;
});
people.add('organizations.create', 'ok', async (call, world) => {
  const slug = world.fresh('org');
  const reply = await call('organizations.create', { body: { name: 'Made', slug } });
  assert.equal((await call('organizations.get', { params: { slug } })).body.role, 'owner');
  return reply;
});
people.add('organizations.create', 'name_already_exists', async (call, { otherTenant }) => {
  return await call('organizations.create', { body: { name: 'Taken', slug: otherTenant.slug } });
});
people.add('organizations.update', 'ok', async (call, world) => {
  const slug = await organizationOf(call, world);
  const body = { name: 'Renamed', slug: world.fresh('org') };
  const reply = await call('organizations.update', { params: { slug }, body: { name: body.name } });
  assert.equal(reply.body.name, body.name);
  const moved = await call('organizations.update', { params: { slug }, body: { slug: body.slug } });
  assert.equal((await call('organizations.get', { params: { slug: body.slug } })).body.id, moved.body.id);
  return reply;
});
people.add('organizations.update', 'name_already_exists', async (call, { otherTenant }) => {
  return await call('organizations.update', { body: { slug: otherTenant.slug } });
});
people.add('organizations.remove', 'ok', async (call, world) => {
  const slug = await organizationOf(call, world);
  const reply = await call('organizations.remove', { params: { slug }, body: { confirm: slug } });
  assert.equal((await call('organizations.get', { params: { slug } })).status, 403);
  return reply;
});
people.add('organizations.checkSandboxSlug', 'ok', async (call, world) => {
  const { slug: taken } = await world.created();
  const check = async (slug: string) =>
    await call('organizations.checkSandboxSlug', { query: { sandbox_slug: slug } });
  const [free, used, bad] = [await check(world.fresh('slug')), await check(taken), await check('-')];
  const seen = [free, used, bad].map(({ body }) => [body.valid, body.available]);
  assert.deepEqual(seen, [
    [true, true],
    [true, false],
    [false, false],
  ]);
  return free;
});
people.add('organizations.suggestSandboxSlug', 'ok', async (call) => {
  return await call('organizations.suggestSandboxSlug');
});

people.add('members.list', 'ok', async (call, world) => {
  const member = await world.person('member');
  const reply = await call('members.list', { query: { limit: 100 } });
  assert.ok(reply.body.data.some(({ user_id: id, role }: Body) => id === member.id && role === 'member'));
  return reply;
});
people.add('members.list', 'invalid_cursor', (call) => call('members.list', { query: { cursor: 'none' } }));
people.add('members.update', 'ok', async (call, world) => {
  const member = await world.person('member');
  assert.equal((await call('invites.list', { as: member.token })).status, 403);
  const parts = { params: { user_id: member.id }, body: { role: 'admin' } };
  const reply = await call('members.update', parts);
  assert.equal(reply.body.role, 'admin');
  assert.equal((await call('invites.list', { as: member.token })).status, 200);
  return reply;
});
people.add('members.update', 'not_found', async (call) => {
  return await call('members.update', { params: { user_id: UNKNOWN_ID }, body: { role: 'admin' } });
});
people.add('members.remove', 'ok', async (call, world) => {
  const member = await world.person('member');
  const reply = await call('members.remove', { params: { user_id: member.id } });
  assert.equal((await call('organizations.get', { as: member.token })).status, 403);
  return reply;
});
people.add('members.remove', 'not_found', async (call) => {
  return await call('members.remove', { params: { user_id: UNKNOWN_ID } });
});

people.add('invites.create', 'ok', async (call, world) => {
  const email = `${world.fresh('invited')}@acme.example`;
  const reply = await call('invites.create', { body: { email, role: 'admin' } });
  assert.deepEqual([reply.body.email, reply.body.role], [email, 'admin']);
  return reply;
});
people.add('invites.create', 'quota_exceeded', async (call, world) => {
  const slug = await organizationOf(call, world);
  const { id: organizationId } = (await call('organizations.get', { params: { slug } })).body;
  const { id: invitedBy } = (await call('users.get')).body;
  // In the store itself: a thousand requests would take seconds.
  await changeStore(world.place, async (db) => {
    for (let count = 0; count < MAX_INVITES; count += 1) {
      await putInvite(db, organizationId, { email: `${count}@acme.example`, role: 'member', invitedBy });
    }
  });
  return await call('invites.create', { params: { slug }, body: { email: 'last@acme.example' } });
});
people.add('invites.list', 'ok', async (call, world) => {
  const { id } = await invite(call, `${world.fresh('invited')}@acme.example`);
  const reply = await call('invites.list');
  assert.ok(reply.body.some((each: Body) => each.id === id));
  return reply;
});
people.add('invites.remove', 'ok', async (call, world) => {
  const invited = await world.person();
  const { id, token } = await invite(call, invited.email);
  const reply = await call('invites.remove', { params: { invite_id: id } });
  assert.equal((await call('invites.accept', { params: { token }, as: invited.token })).status, 400);
  return reply;
});
people.add('invites.remove', 'not_found', async (call) => {
  return await call('invites.remove', { params: { invite_id: UNKNOWN_ID } });
});
people.add('invites.get', 'ok', async (call, world) => {
  const email = `${world.fresh('invited')}@acme.example`;
  const { token } = await invite(call, email);
  const reply = await call('invites.get', { params: { token } });
  assert.deepEqual([reply.body.organization.slug, reply.body.email], [world.acme.slug, email]);
  return reply;
});
for (const [operation, status] of [
  ['invites.accept', 200],
  ['invites.decline', 403],
] as const) {
  people.add(operation, 'ok', async (call, world) => {
    const invited = await world.person();
    const { token } = await invite(call, invited.email);
    const reply = await call(operation, { params: { token }, as: invited.token });
    assert.equal((await call('organizations.get', { as: invited.token })).status, status);
    return reply;
  });
  people.add(operation, 'forbidden', async (call, world) => {
    const { token } = await invite(call, `${world.fresh('invited')}@acme.example`);
    return await call(operation, { params: { token }, as: world.otherTenant.token });
  });
}

people.add('users.get', 'ok', async (call, world) => {
  const person = await world.person();
  const reply = await call('users.get', { as: person.token });
  assert.deepEqual([reply.body.id, reply.body.email], [person.id, person.email]);
  return reply;
});
people.add('users.update', 'ok', async (call, world) => {
  const { token: as } = await world.person();
  const reply = await call('users.update', { body: { display_name: 'Ann' }, as });
  assert.equal((await call('users.get', { as })).body.display_name, 'Ann');
  return reply;
});
people.add('users.remove', 'ok', async (call, world) => {
  const { email, token: as } = await world.person('member');
  const reply = await call('users.remove', { body: { confirm: email }, as });
  assert.equal((await call('users.get', { as })).status, 401);
  return reply;
});

async function organizationOf(call: Call, world: World): Promise<string> {
  const slug = world.fresh('org');
  const reply = await call('organizations.create', { body: { name: 'Made', slug } });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return slug;
}

async function invite(call: Call, email: string): Promise<Body> {
  const reply = await call('invites.create', { body: { email } });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply.body;
}
