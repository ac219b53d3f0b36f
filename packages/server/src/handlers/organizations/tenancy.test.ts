import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  BYTES,
  pathsOf,
  REST_OPERATIONS,
  ROLES,
  type RestOperation,
  type RestOperationName,
} from '@svc/contract/rest';
import { createTenants, type Tenants } from '../../testing/tenants.ts';

/**
 * No operation reaches into another organization. The cases are generated from the table of operations, so that a new
 * operation is covered automatically; one that needs a body or a parameter of a new kind says here what a valid one is.
 */
const BODIES: Partial<Record<RestOperationName, (tenants: Tenants) => unknown>> = {
  'password.set': () => ({ password: 'correct horse battery' }),
  'identityProvider.put': () => ({ issuer_url: 'https://id.example', client_id: 'x', client_secret: null }),
  'secondFactor.confirm': () => ({ code: '123456' }),
  'secondFactor.remove': () => ({ code: '123456' }),
  'sandboxes.create': () => ({ name: 'intruder', image: { type: 'oci', reference: 'python' } }),
  'sandboxes.recoverByName': () => ({ action: 'wait' }),
  'sandboxes.recover': () => ({ action: 'wait' }),
  'sandboxes.update': () => ({ name: 'taken-over' }),
  'snapshots.create': ({ victim }) => ({ kind: 'disk', sandbox_id: victim.ids['sandbox_id'], name: 'copy' }),
  'images.pull': () => ({ reference: 'python' }),
  'network.explain': () => ({ host: 'example.com', port: 443 }),
  'lifecycle.update': () => ({ max_duration_secs: 60 }),
  'network.update': () => ({ policy: null }),
  'processes.start': () => ({ cmd: 'true' }),
  'processes.signal': () => ({ signal: 'SIGKILL' }),
  'processes.resize': () => ({ rows: 1, cols: 1 }),
  'files.createLink': () => ({ path: '/a', method: 'GET' }),
  'files.makeFolder': () => ({ path: '/intruder' }),
  'files.move': () => ({ from: '/a', to: '/b' }),
  'files.change': () => ({ path: '/a', mode: '0777' }),
  'code.run': () => ({ language: 'python', code: '1' }),
  'code.stream': () => ({ language: 'python', code: '1' }),
  'contexts.create': () => ({ language: 'python' }),
  'volumes.create': () => ({ name: 'intruder' }),
  'volumes.update': () => ({ labels: { owned: 'yes' } }),
  'volumeFiles.mkdir': () => ({ path: 'intruder' }),
  'volumeFiles.copy': () => ({ from: 'a.txt', to: 'b.txt' }),
  'volumeFiles.rename': () => ({ from: 'a.txt', to: 'b.txt' }),
  'volumeFiles.existMany': () => ({ paths: ['a.txt'] }),
  'previews.create': () => ({ port: 3000 }),
  'previews.open': () => ({ port: 3000 }),
  'sshKeys.create': () => ({
    name: 'intruder',
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOvwFpajiI+23NG+zkM6rOoPYmA5EQSWHIDdZg/RHXQy',
  }),
  'billing.choosePlan': () => ({ plan: 'self_hosted' }),
  'organizations.create': () => ({ name: 'third' }),
  'organizations.update': () => ({ name: 'taken over' }),
  'organizations.remove': ({ victim }) => ({ confirm: victim.slug }),
  'members.update': () => ({ role: 'owner' }),
  'invites.create': () => ({ email: 'intruder@example.com' }),
  'apiKeys.create': () => ({ name: 'intruder' }),
  'tokens.create': () => ({ name: 'intruder' }),
  'secrets.put': () => ({ value: 'v', allowed_hosts: [{ type: 'exact', value: 'api.example' }] }),
  'webhooks.create': () => ({ url: 'https://example.com/', event_types: ['*'] }),
  'registries.put': () => ({ registry_host: 'registry.example', username: 'u', password: 'p' }),
  'users.remove': () => ({ confirm: 'user@example.com' }),
};

/** What a path holds on a `user` path that is about the caller, not about an organization. */
const ABOUT_CALLER = new Set(['users', 'tokens']);

let tenants: Tenants;
before(async () => {
  tenants = await createTenants();
});
after(() => tenants.close());

describe('every operation', () => {
  for (const [name, operation] of Object.entries(REST_OPERATIONS) as [RestOperationName, RestOperation][]) {
    if (operation.audience === 'anyone') continue;
    for (const { path, audience } of pathsOf(operation)) {
      const title = `${operation.method} /v1${path}`;
      const send = (credential: string | undefined) => request(name, operation, path, credential);

      test(`${title} asks for a credential that exists, is not revoked and has not expired`, async () => {
        const { attacker, victim } = tenants;
        const refused = [
          undefined,
          'svc_0',
          'svc_pat_0',
          audience === 'key' ? victim.revokedKey : victim.revokedToken,
          audience === 'key' ? victim.expiredKey : victim.expiredToken,
          // The other kind of credential.
          ...(audience === 'key' ? [] : [victim.key, attacker.key]),
        ];
        for (const credential of refused) {
          const { status, text } = await send(credential);
          assert.equal(status, 401, `${credential?.slice(0, 8)}: ${text}`);
          assert.equal(text, '{"error":{"code":"invalid_api_key","message":"unauthorized","details":null}}');
        }
        if (audience !== 'key') return;
        // The answer to a valid token names what is missing, for its own user alone.
        const { status, text } = await send(attacker.ownerToken);
        assert.equal(status, 401, text);
        assert.match(text, /"missing":"organization","yours":\[[^\]]*"attacker"/);
        assert.doesNotMatch(text, /victim/);
      });

      test(`${title} gives a stranger nothing of the organization`, async () => {
        const { attacker, victim } = tenants;
        const isInVictim = path.startsWith('/orgs/{slug}');
        const before = await tenants.fingerprint();
        const { status, text } = await send(audience === 'key' ? attacker.key : attacker.ownerToken);
        if (isInVictim) assert.equal(status, 403, text);
        else if ('token' in operation.params.properties) assert.equal(status, 400, text);
        else if (Object.keys(operation.params.properties).length > 0) assert.equal(status, 404, text);
        for (const secret of victim.secrets) assert.ok(!text.includes(secret), `${secret} in ${text}`);
        assert.equal(await tenants.fingerprint(), before, 'the victim was changed');
      });

      if (audience === 'user' && path.startsWith('/orgs/{slug}') && operation.role !== ROLES[0]) {
        test(`${title} refuses a member who is not ${operation.role}`, async () => {
          const before = await tenants.fingerprint();
          const weaker = operation.role === 'owner' ? tenants.victim.adminToken : tenants.victim.memberToken;
          const { status, text } = await send(weaker);
          assert.equal(status, 403, text);
          assert.equal(await tenants.fingerprint(), before, 'the organization was changed');
        });
      }
    }
  }
});

async function request(
  name: RestOperationName,
  operation: RestOperation,
  path: string,
  credential: string | undefined,
): Promise<{ readonly status: number; readonly text: string }> {
  const { victim } = tenants;
  const url = path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) =>
    encodeURIComponent(parameter === 'slug' ? victim.slug : parameterOf(operation, parameter)),
  );
  const needsBody = operation.body !== null && operation.body !== BYTES && hasRequired(operation.body);
  const body = BODIES[name]?.(tenants);
  assert.ok(!needsBody || body !== undefined, `${name} needs an entry in BODIES`);
  return await tenants.send(operation.method, `${url}${queryOf(name)}`, {
    ...(credential === undefined ? {} : { key: credential }),
    headers: headersOf(operation),
    ...(operation.body === BYTES ? { body: Buffer.from('intruder') } : {}),
    ...(body === undefined ? {} : { body }),
  });
}

function parameterOf({ tag }: RestOperation, parameter: string): string {
  const { ids } = tenants.victim;
  const value = ids[`${tag}.${parameter}`] ?? ids[parameter];
  assert.ok(value !== undefined, `test-tenants.ts has no value for parameter ${parameter} of ${tag}`);
  return ABOUT_CALLER.has(tag) && parameter === 'id' ? (ids['tokens.id'] ?? value) : value;
}

function headersOf({ headers }: RestOperation): Readonly<Record<string, string>> {
  if (!('x-svc-file-path' in headers.properties)) return {};
  return { 'x-svc-file-path': Buffer.from('a.txt').toString('base64url') };
}

function queryOf(name: RestOperationName): string {
  if (name === 'organizations.checkSandboxSlug') return '?sandbox_slug=some-slug';
  return 'path' in REST_OPERATIONS[name].query.properties ? '?path=/a' : '';
}

function hasRequired(schema: object): boolean {
  return 'required' in schema && Array.isArray(schema.required) && schema.required.length > 0;
}
