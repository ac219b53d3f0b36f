import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { startWithPeople } from '../testing/people.ts';
import { body } from '../testing/sandboxes.ts';
import { hostsInForce } from './secret-hosts.ts';

const AUTHORITY = '-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n';
const OTHER = AUTHORITY.replace('ours', 'theirs');
const named = (value: string) => ({ type: value.startsWith('*.') ? 'wildcard' : 'exact', value }) as const;
const pattern = (value: string) => (value === '*' ? ({ type: 'any' } as const) : named(value));
const entry = (hosts: readonly string[], more: object = {}) => ({
  env_var: 'KEY',
  placeholder: '$SVC_KEY',
  allowed_hosts: hosts.map(pattern),
  source: { type: 'store', reference: 'KEY' } as const,
  ...more,
});

/** An organization whose secret KEY has these hosts, and a member who makes sandboxes. */
async function withStored(t: TestContext, hosts: readonly string[], more: object = {}) {
  const world = await startWithPeople(t);
  const [admin, member] = await Promise.all(['a', 'm'].map(world.person));
  assert.ok(admin && member);
  await world.organization('acme', { admin, member });
  const ask = (key: string, method: 'PUT' | 'POST' | 'PATCH', path: string, sent: object) =>
    world.server.rest(method, `/orgs/acme${path}`, { key, body: sent });
  const set = (value: string, allowed: readonly string[], rest: object = {}) =>
    ask(admin.key, 'PUT', '/secrets/KEY', { value, allowed_hosts: allowed.map(named), ...rest });
  assert.equal((await set('one', hosts, more)).status, 200);
  let count = 0;
  const create = (network: object) => {
    const name = `box-${(count += 1)}`;
    return ask(member.key, 'POST', '/sandboxes?start=true&wait_for=running', body(name, { network }));
  };
  const patch = (id: string, change: object) => ask(member.key, 'PATCH', `/sandboxes/${id}/network`, change);
  const { orchestrator } = world.server;
  /** What the engine holds a sandbox to. */
  const held = async (id: string) => ({
    hosts: (await orchestrator.get(id))?.network?.secrets?.entries[0]?.allowed_hosts.map((host) =>
      host.type === 'any' ? '*' : host.value,
    ),
    value: orchestrator.secretValues.get(id)?.['KEY'],
  });
  return { set, create, patch, held };
}

type Acme = Awaited<ReturnType<typeof withStored>>;
const field = ({ body: reported }: Awaited<ReturnType<Acme['create']>>) => reported.error?.details?.field;
const HOSTS_FIELD = 'network.secrets.entries[0].allowed_hosts[0]';

test('a creator of sandboxes can send a secret of the organization only to its hosts, at create and later', async (t) => {
  const { create, patch, held } = await withStored(t, ['api.example', '*.cdn.example']);
  const secrets = (...hosts: readonly string[]) => ({ secrets: { entries: [entry(hosts)] } });
  const made = await create(secrets('API.example', 'a.cdn.example'));
  assert.equal(made.body.status, 'running', JSON.stringify(made.body));
  const { id } = made.body;
  for (const host of [
    'evil.example',
    '*',
    '*.api.example',
    '*.example',
    'api.example.evil',
    'xcdn.example',
  ]) {
    for (const refused of [await create(secrets(host)), await patch(id, secrets(host))]) {
      assert.deepEqual([refused.status, field(refused)], [400, HOSTS_FIELD], host);
      assert.match(
        refused.body.error.message,
        /KEY is for api\.example, \*\.cdn\.example alone; .*svc secret set KEY/,
      );
    }
  }
  assert.equal(field(await create(secrets('api.example', 'b.example'))), HOSTS_FIELD.replace(/0\]$/, '1]'));
  for (const host of ['cdn.example', '*.cdn.example', '*.deep.cdn.example'])
    assert.equal((await patch(id, secrets(host))).status, 200, host);
  assert.deepEqual(await held(id), { hosts: ['*.deep.cdn.example'], value: 'one' });
});

test('a spec cannot add certificate authorities for the hosts of a secret of the organization', async (t) => {
  const { create, patch } = await withStored(t, ['api.example'], { upstream_ca_cert: [AUTHORITY] });
  const secrets = { entries: [entry(['api.example'])] };
  const made = await create({ secrets, tls: { upstream_ca_cert: [`${AUTHORITY}\n`] } });
  assert.equal(made.body.status, 'running', JSON.stringify(made.body));
  const scoped = (scope: string) => ({ scoped_upstream_ca_cert: [{ pattern: scope, path: OTHER }] });
  for (const [tls, name] of [
    [{ upstream_ca_cert: [AUTHORITY, OTHER] }, 'network.tls.upstream_ca_cert[1]'],
    [scoped('api.example'), 'network.tls.scoped_upstream_ca_cert[0].path'],
    [scoped('*.example'), 'network.tls.scoped_upstream_ca_cert[0].path'],
  ] as const) {
    const refused = await create({ secrets, tls });
    assert.equal(field(refused), name);
    assert.match(refused.body.error.message, /svc secret set KEY --ca/);
    assert.equal(field(await patch(made.body.id, { tls })), name);
  }
  assert.equal((await patch(made.body.id, { tls: scoped('other.example') })).status, 200);
  const unproven = { entries: [entry(['api.example'], { require_tls_identity: false })] };
  assert.equal(field(await create({ secrets: unproven })), 'network.secrets.entries[0].require_tls_identity');
});

test('a value in the request may go to the hosts that the request names', async (t) => {
  const { create } = await withStored(t, ['api.example']);
  const own = entry(['*'], { source: null, value: 'own', require_tls_identity: false });
  const made = await create({ secrets: { entries: [own] }, tls: { upstream_ca_cert: [OTHER] } });
  assert.equal(made.body.status, 'running', JSON.stringify(made.body));
});

test('other hosts of a secret reach sandboxes that run: fewer, none in common, and all of them again', async (t) => {
  const { set, create, patch, held } = await withStored(t, ['*.example']);
  const made = await create({ secrets: { entries: [entry(['a.example', '*.b.example'])] } });
  const { id } = made.body;
  const becomes = async (value: string, hosts: readonly string[]) => {
    let now: object = {};
    await waitUntil(
      async () => {
        now = await held(id);
        return JSON.stringify(now) === JSON.stringify({ hosts, value });
      },
      { what: `${hosts.join(', ')} and ${value}` },
    ).catch((error: unknown) => assert.deepEqual(now, { hosts, value }, String(error)));
  };
  await set('two', ['a.example']);
  await becomes('two', ['a.example']);
  await set('three', ['elsewhere.example']);
  await becomes('three', ['nowhere.invalid']);
  // What is not about secrets can be changed meanwhile, and changes nothing about them.
  assert.equal((await patch(id, { max_connections: 7 })).status, 200);
  await becomes('three', ['nowhere.invalid']);
  await set('four', ['a.example', 'deep.b.example']);
  await becomes('four', ['a.example', 'deep.b.example']);
});

test('an authority that a secret no longer names has sandboxes that trust it lose the secret', async (t) => {
  const { set, create, held } = await withStored(t, ['api.example'], { upstream_ca_cert: [AUTHORITY] });
  const secrets = { entries: [entry(['api.example'])] };
  const made = await create({ secrets, tls: { upstream_ca_cert: [AUTHORITY] } });
  await set('two', ['api.example']);
  await waitUntil(async () => (await held(made.body.id)).hosts?.[0] === 'nowhere.invalid');
});

test('a host is sent a value exactly when the sandbox and the secret both name it', () => {
  const patterns = ['*', 'a.test', '*.a.test', 'x.a.test', '*.x.a.test', 'b.test', '*.test', 'ba.test'];
  const hosts = ['a.test', 'x.a.test', 'y.a.test', 'z.x.a.test', 'b.test', 'ba.test', 'test', 'c.other'];
  const fits = (text: string, host: string) =>
    text === '*' ||
    (text.startsWith('*.') ? host === text.slice(2) || host.endsWith(text.slice(1)) : host === text);
  for (const one of patterns)
    for (const two of patterns)
      for (const three of patterns.slice(1))
        for (const host of hosts) {
          const terms = { name: 'KEY', authorities: [], allowedHosts: [named(three)] };
          const force = hostsInForce(entry([one, two]), terms, undefined);
          const isSent = force.some((each) => fits(each.type === 'any' ? '*' : each.value, host));
          const isBoth = (fits(one, host) || fits(two, host)) && fits(three, host);
          assert.equal(isSent, isBoth, `${one}, ${two} with ${three}: ${host}`);
        }
});
