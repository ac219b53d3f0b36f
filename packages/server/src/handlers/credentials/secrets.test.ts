import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { putSecret } from '../../store/secrets.ts';
import { startWithPeople } from '../../testing/people.ts';
import { body } from '../../testing/sandboxes.ts';

const VALUE = 'correct horse battery staple';
const HOSTS = [{ type: 'exact', value: 'api.example' }];
const stored = (more: object = {}) => ({ value: VALUE, allowed_hosts: HOSTS, ...more });

async function acme(t: Parameters<typeof startWithPeople>[0]) {
  const world = await startWithPeople(t);
  const [admin, member, outsider] = await Promise.all(['a', 'm', 's'].map(world.person));
  assert.ok(admin && member && outsider);
  const id = await world.organization('acme', { admin, member });
  const rest = async (
    key: string,
    method: 'GET' | 'PUT' | 'DELETE' | 'POST' | 'PATCH',
    path: string,
    sent?: object,
  ) =>
    await world.server.rest(method, `/orgs/acme${path}`, {
      key,
      ...(sent === undefined ? {} : { body: sent }),
    });
  return { ...world, admin, member, outsider, id, rest };
}

test('admins set and remove secrets, members see their names, and no caller sees a value', async (t) => {
  const { admin, member, outsider, id, rest, eventTypes, server } = await acme(t);
  for (const { key } of [member, outsider])
    assert.equal((await rest(key, 'PUT', '/secrets/KEY', stored())).status, 403);
  const made = await rest(admin.key, 'PUT', '/secrets/KEY', stored());
  assert.deepEqual(Object.keys(made.body).toSorted(), [
    'allowed_hosts',
    'created_at',
    'name',
    'updated_at',
    'upstream_ca_cert',
  ]);
  await rest(admin.key, 'PUT', '/secrets/KEY', stored({ value: `${VALUE} again` }));
  const listed = await rest(member.key, 'GET', '/secrets');
  assert.deepEqual(
    listed.body.map(({ name }: { name: string }) => name),
    ['KEY'],
  );
  assert.equal((await rest(outsider.key, 'GET', '/secrets')).status, 403);
  assert.equal((await rest(member.key, 'DELETE', '/secrets/KEY')).status, 403);
  assert.equal((await rest(admin.key, 'DELETE', '/secrets/KEY')).status, 200);
  assert.equal((await rest(admin.key, 'DELETE', '/secrets/KEY')).body.error.code, 'not_found');
  assert.deepEqual(await eventTypes(id), ['secret_set', 'secret_set', 'secret_removed']);
  const rows = await server.database.selectFrom('events').selectAll().execute();
  assert.ok(!JSON.stringify([rows, listed.body, made.body]).includes('horse'));
});

test('an invalid secret is 400 naming the field, without the value', async (t) => {
  const { admin, rest } = await acme(t);
  for (const [name, sent] of [
    ['KEY', stored({ value: '' })],
    ['KEY', stored({ value: `horse\u0000` })],
    ['KEY', stored({ value: 'horse'.repeat(10_000) })],
    ['KEY', stored({ more: 1 })],
    ['1KEY', stored()],
    ['KEY', { value: 'horse' }],
    ['KEY', stored({ allowed_hosts: [] })],
    ['KEY', stored({ allowed_hosts: [{ type: 'any' }] })],
    ['KEY', stored({ allowed_hosts: [{ type: 'exact', value: '10.0.0.1' }] })],
    ['KEY', stored({ allowed_hosts: [{ type: 'wildcard', value: 'api.example' }] })],
    ['KEY', stored({ upstream_ca_cert: ['/etc/ssl/ca.pem'] })],
  ] as const) {
    const refused = await rest(admin.key, 'PUT', `/secrets/${name}`, sent);
    assert.deepEqual([refused.status, refused.body.error.code], [400, 'invalid_request'], name);
    assert.ok(!JSON.stringify(refused.body).includes('horse'));
  }
});

const entry = (more: object) => ({ env_var: 'KEY', placeholder: '$SVC_KEY', allowed_hosts: HOSTS, ...more });
const withSecret = (more: object) => ({ network: { secrets: { entries: [entry(more)] } } });

for (const source of [
  { type: 'env', var: 'KEY' },
  { type: 'store', reference: 'KEY' },
])
  test(`a sandbox has the value of a secret that it refers to as ${source.type}, and a new one soon`, async (t) => {
    const { admin, rest, server, id: organizationId } = await acme(t);
    const create = () =>
      rest(
        admin.key,
        'POST',
        '/sandboxes?start=true&wait_for=running',
        body('one', withSecret({ source, value: '' })),
      );
    const missing = await create();
    assert.equal(missing.body.error.details.field, 'network.secrets.entries[0].source');
    await rest(admin.key, 'PUT', '/secrets/KEY', stored());
    const made = await create();
    assert.equal(made.body.status, 'running', JSON.stringify(made.body));
    assert.deepEqual(server.orchestrator.secretValues.get(made.body.id), { KEY: VALUE });
    const entries = server.orchestrator.requestOf(made.body.id).spec.network?.secrets?.entries;
    assert.deepEqual(entries, [entry({})], 'the engine gets no source and no value in a spec');
    assert.ok(!JSON.stringify(made.body).includes('"source"'));
    await rest(admin.key, 'PUT', '/secrets/KEY', stored({ value: 'new' }));
    await waitUntil(() => server.orchestrator.secretValues.get(made.body.id)?.['KEY'] === 'new');
    const inUse = await rest(admin.key, 'DELETE', '/secrets/KEY');
    assert.deepEqual([inUse.status, inUse.body.error.code], [409, 'invalid_state_transition']);
    const rows = await server.database.selectFrom('sandboxes').selectAll().execute();
    assert.ok(!JSON.stringify(rows).includes('horse'), organizationId);
  });

test('a stored value that did not reach the engine is sent with the next reconciliation', async (t) => {
  const { admin, rest, server } = await acme(t);
  await rest(admin.key, 'PUT', '/secrets/KEY', stored());
  const source = { type: 'store', reference: 'KEY' };
  const made = await rest(
    admin.key,
    'POST',
    '/sandboxes?start=true&wait_for=running',
    body('one', withSecret({ source })),
  );
  server.orchestrator.failAtChange = server.orchestrator.changesAsked + 1;
  await rest(admin.key, 'PUT', '/secrets/KEY', stored({ value: 'new' }));
  await waitUntil(() => server.orchestrator.changesAsked >= server.orchestrator.failAtChange);
  assert.equal(server.orchestrator.secretValues.get(made.body.id)?.['KEY'], VALUE);
  server.orchestrator.goAway();
  server.orchestrator.comeBack();
  await waitUntil(() => server.orchestrator.secretValues.get(made.body.id)?.['KEY'] === 'new');
});

test('secrets of one organization are not found from another', async (t) => {
  const { admin, outsider, rest, server, organization } = await acme(t);
  await rest(admin.key, 'PUT', '/secrets/KEY', stored());
  await organization('other', { admin: outsider });
  const sent = body('one', withSecret({ source: { type: 'store', reference: 'KEY' } }));
  const refused = await server.rest('POST', '/orgs/other/sandboxes', { key: outsider.key, body: sent });
  assert.equal(refused.body.error.details.field, 'network.secrets.entries[0].source');
  assert.equal((await server.rest('GET', `/orgs/other/secrets`, { key: outsider.key })).body.length, 0);
});

test('the secrets of a sandbox change in place; an entry that says no value keeps its own', async (t) => {
  const { admin, rest, server } = await acme(t);
  const made = await rest(
    admin.key,
    'POST',
    '/sandboxes?start=true&wait_for=running',
    body('one', withSecret({ value: VALUE })),
  );
  const { id } = made.body;
  const patch = (secrets: unknown) => rest(admin.key, 'PATCH', `/sandboxes/${id}/network`, { secrets });
  const more = { env_var: 'MORE', placeholder: '$SVC_MORE', allowed_hosts: HOSTS };
  const refused = await patch({ entries: [more] });
  assert.equal(refused.body.error.details.field, 'network.secrets.entries[0].value');
  const changed = await patch({
    entries: [entry({ allowed_hosts: [{ type: 'any' }] }), { ...more, value: 'm' }],
  });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  assert.deepEqual(server.orchestrator.secretValues.get(id), { KEY: VALUE, MORE: 'm' });
  const held = (await server.orchestrator.get(id))?.network?.secrets?.entries;
  assert.deepEqual(
    held?.map(({ env_var: name }) => name),
    ['KEY', 'MORE'],
  );
  assert.deepEqual((await patch(null)).body.spec.network.secrets, []);
  assert.equal((await server.orchestrator.get(id))?.network?.secrets ?? null, null);
});

test('an organization has 256 secrets at most; those that it has can be set on', async (t) => {
  const { admin, rest, server, id } = await acme(t);
  for (let index = 0; index < 256; index += 1)
    await putSecret(server.database, id, {
      name: `KEY_${index}`,
      allowedHosts: [],
      authorities: [],
      seal: () => 'sealed',
    });
  const refused = await rest(admin.key, 'PUT', '/secrets/MORE', stored());
  assert.deepEqual([refused.status, refused.body.error.code], [429, 'quota_exceeded']);
  assert.equal((await rest(admin.key, 'PUT', '/secrets/KEY_7', stored())).status, 200);
});
