import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sealer } from '../../secrets/sealer.ts';
import { findRegistryFor, registryContext } from '../../store/registries.ts';
import { startWithPeople } from '../../testing/people.ts';

const PASSWORD = 'correct horse battery staple';

test('admins set and forget a registry, members see it without its password', async (t) => {
  const { server, person, organization, eventTypes } = await startWithPeople(t);
  const [admin, member, outsider] = await Promise.all(['a', 'm', 's'].map(person));
  assert.ok(admin && member && outsider);
  const id = await organization('acme', { admin, member });
  const body = { registry_host: 'index.docker.io', username: 'ann', password: PASSWORD };
  const put = (key: string, change: object = {}) =>
    server.rest('PUT', '/orgs/acme/registries', { key, body: { ...body, ...change } });
  assert.equal((await put(member.key)).status, 403);
  assert.equal((await put(outsider.key)).status, 403);
  const made = await put(admin.key);
  assert.equal(made.status, 200);
  assert.deepEqual(Object.keys(made.body).toSorted(), [
    'created_at',
    'id',
    'registry_host',
    'updated_at',
    'username',
  ]);
  assert.equal(made.body.registry_host, 'docker.io');
  const again = await put(admin.key, { registry_host: 'registry-1.docker.io', username: 'bob' });
  assert.deepEqual([again.body.id, again.body.username], [made.body.id, 'bob']);
  await put(admin.key, { registry_host: 'Registry.Example:5000' });
  const list = async (key: string) => (await server.rest('GET', '/orgs/acme/registries', { key })).body;
  const hosts = (await list(member.key)).map((item: { registry_host: string }) => item.registry_host);
  assert.deepEqual(hosts, ['docker.io', 'registry.example:5000']);
  const path = `/orgs/acme/registries/${made.body.id}`;
  assert.equal((await server.rest('DELETE', path, { key: member.key })).status, 403);
  assert.equal((await server.rest('DELETE', path, { key: admin.key })).status, 200);
  assert.equal((await server.rest('DELETE', path, { key: admin.key })).body.error.code, 'not_found');
  const types = ['registry_updated', 'registry_updated', 'registry_updated', 'registry_removed'];
  assert.deepEqual(await eventTypes(id), types);
});

test('a registry that is no host is 400 naming the field', async (t) => {
  const { server, person, organization } = await startWithPeople(t);
  const admin = await person('a');
  await organization('acme', { admin });
  const good = { registry_host: 'ghcr.io', username: 'ann', password: PASSWORD };
  for (const [change, field] of [
    [{ registry_host: '' }, 'registry_host'],
    [{ registry_host: 'a b' }, 'registry_host'],
    [{ registry_host: 'ghcr.io/ann' }, 'registry_host'],
    [{ registry_host: 'http://ghcr.io' }, 'registry_host'],
    [{ registry_host: '-x.io' }, 'registry_host'],
    [{ username: '' }, 'username'],
    [{ username: 'a\u0000' }, 'username'],
    [{ password: '' }, 'password'],
    [{ password: 7 }, 'password'],
    [{ extra: 1 }, 'extra'],
  ] as const) {
    const body = { ...good, ...change };
    const answer = await server.rest('PUT', '/orgs/acme/registries', { key: admin.key, body });
    assert.equal(answer.status, 400, JSON.stringify(change));
    assert.equal(answer.body.error.details.field, field);
    assert.ok(!JSON.stringify(answer.body).includes(PASSWORD));
  }
});

test('the password is sealed for its own row, and opens there', async (t) => {
  const { server, person, organization } = await startWithPeople(t);
  const admin = await person('a');
  const id = await organization('acme', { admin });
  const body = { registry_host: 'ghcr.io', username: 'ann', password: PASSWORD };
  await server.rest('PUT', '/orgs/acme/registries', { key: admin.key, body });
  const registry = await findRegistryFor(server.database, id, 'GHCR.io');
  assert.ok(registry !== undefined);
  // The key of the test server.
  const sealer = new Sealer([new Uint8Array(32).fill(7)]);
  assert.equal(sealer.open(registry.sealedPassword, registryContext(registry.id)), PASSWORD);
  assert.throws(() => sealer.open(registry.sealedPassword, registryContext('another')));
});
