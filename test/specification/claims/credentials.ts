import assert from 'node:assert/strict';
import { Client } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { createLocalOrganization, createLocalToken } from '@svc/server/local';
import { claimOnce, provedBy, type Claim } from '../claim.ts';
import { ORGANIZATION, UNKNOWN_ID, type Ground } from '../ground.ts';
import { plainBox } from './record.ts';

async function statusOf(ground: Ground, as: string | null, path = '/sandboxes'): Promise<number> {
  return (await ground.rest('GET', path, { as })).status;
}

const metrics = (namespace: string) => ['sandbox.metrics.get', { namespace }] as const;

export const credentialClaims: readonly Claim[] = [
  claimOnce(
    'credential.api-key',
    'An API key begins with `svc_` and names its organization',
    'it lists the sandboxes of its organization below `/v1`',
    async (ground) => {
      assert.match(ground.key, /^svc_/);
      const { body } = await ground.rest('GET', '/me/org');
      assert.equal(body.slug, ORGANIZATION);
    },
  ),
  claimOnce(
    'credential.personal-token',
    'A personal access token begins with `svc_pat_`; the path names the organization, of which its user must be a member',
    'it is let in below its own organization, and not below another or where keys go',
    async (ground) => {
      assert.match(ground.token, /^svc_pat_/);
      assert.equal(await statusOf(ground, ground.token, `/orgs/${ORGANIZATION}/sandboxes`), 200);
      const place = { dataFolder: ground.server.engine.folder };
      await createLocalOrganization(place, { slug: 'foreign', owner: 'owner@foreign.example' });
      const { secret } = await createLocalToken(place, 'owner@foreign.example', { name: 'x' });
      assert.ok([403, 404].includes(await statusOf(ground, secret, `/orgs/${ORGANIZATION}/sandboxes`)));
      assert.equal(await statusOf(ground, ground.token), 401);
    },
  ),
  provedBy(
    'credential.session',
    'A session of the server is taken where a personal access token is',
    'packages/server/src/handlers/organizations/organizations.test.ts',
    'keys and users do not reach each other’s addresses, and a session is as good as a token',
  ),
  claimOnce(
    'credential.missing',
    'Without a credential, or with one that is not valid, a request is 401 `invalid_api_key`',
    'no header, a made-up key, an expired one',
    async (ground) => {
      for (const as of [null, 'svc_made-up', 'svc_pat_made-up', '']) {
        const { status, body, headers } = await ground.rest('GET', '/sandboxes', { as });
        assert.deepEqual([status, body.error.code], [401, 'invalid_api_key']);
        assert.equal(headers.get('www-authenticate'), 'Bearer');
      }
    },
  ),
  claimOnce(
    'message.unauthorized',
    'The message of a missing or invalid credential is `unauthorized`',
    'the body of a 401',
    async (ground) => {
      assert.equal((await ground.rest('GET', '/sandboxes', { as: null })).body.error.message, 'unauthorized');
    },
  ),
  claimOnce(
    'message.invalid-request',
    'The message of a malformed request says what is wrong with which field',
    'the body of a 400: the message names the field that `details` has',
    async (ground) => {
      const { body } = await ground.rest('GET', '/sandboxes?limit=x');
      assert.ok(body.error.message.includes(body.error.details.field), body.error.message);
    },
  ),
  claimOnce(
    'message.not-found',
    'The message of a 404 says what does not exist',
    'the body of a 404 names what was asked for',
    async (ground) => {
      const { body } = await ground.rest('GET', `/sandboxes/${UNKNOWN_ID}`);
      assert.ok(body.error.message.includes(UNKNOWN_ID), body.error.message);
    },
  ),
  claimOnce(
    'credential.rpc-key',
    'A key of `svc server keygen` reaches every namespace and does everything',
    'a sandbox is started, used and stopped in a new namespace',
    async (ground) => {
      const { key } = await createKey(ground.server.engine.folder, {});
      assert.match(key, /^svc_/);
      const place = { sandbox: 'everywhere', namespace: ground.fresh('ns') };
      const config = { image: 'svc/busybox', memory: 64 };
      assert.equal((await ground.rpc('sandbox.start', { ...place, config }, key)).error, undefined);
      const ran = await ground.rpc('sandbox.command.run', { ...place, command: 'true' }, key);
      assert.equal(ran.error, undefined);
      assert.equal((await ground.rpc('sandbox.stop', place, key)).error, undefined);
    },
  ),
  claimOnce(
    'credential.rpc-key.namespace',
    'A key with a namespace reaches the sandboxes of that namespace alone',
    'its own is answered, another is -32002 with 403',
    async (ground) => {
      const { key } = await createKey(ground.server.engine.folder, { namespace: 'only' });
      assert.equal((await ground.rpc(...metrics('only'), key)).error, undefined);
      const [method, params] = metrics('other');
      const { status, body } = await ground.postRpc({ jsonrpc: '2.0', id: '1', method, params }, key);
      assert.deepEqual([status, body.error?.code], [403, -32_002]);
      assert.equal(body.error?.message, "Access denied to namespace 'other'");
    },
  ),
  claimOnce(
    'credential.rpc-key.earlier',
    'A new key leaves earlier ones valid',
    'both are answered',
    async (ground) => {
      const keys = [
        await createKey(ground.server.engine.folder, {}),
        await createKey(ground.server.engine.folder, {}),
      ];
      for (const { key } of keys)
        assert.equal((await ground.rpc(...metrics('default'), key)).error, undefined);
    },
  ),
  claimOnce(
    'credential.none',
    'A JSON-RPC request without a credential is -32002',
    'the code, the status 401 and the id of the request',
    async (ground) => {
      const { status, body } = await ground.postRpc(
        { jsonrpc: '2.0', id: '7', method: 'sandbox.stop', params: {} },
        null,
      );
      assert.deepEqual([status, body.error?.code, body.id], [401, -32_002, '7']);
    },
  ),
  claimOnce(
    'message.authentication-required',
    'Its message is `Authentication required`',
    'the envelope of a request without a key',
    async (ground) => {
      const { error } = await ground.rpc('sandbox.stop', {}, null);
      assert.equal(error?.message, 'Authentication required');
    },
  ),
  provedBy(
    'header.authorization',
    'The key is taken from `Authorization: Bearer`, bare, and from `Proxy-Authorization`',
    'packages/server/src/transports/rpc/authentication.test.ts',
    'a key is taken as Bearer in any case, bare, and from Proxy-Authorization',
  ),
  provedBy(
    'credential.rpc-key.claims',
    'Such a key is signed by the server: it says its namespace, and when it expires only if it does',
    'packages/server/src/access/signed-keys.test.ts',
    'a key is svc_ and a JWT whose claims are iat and namespace, and exp only when it expires',
  ),
  claimOnce(
    'environment.SVC_API_KEY',
    'Clients take their key from `SVC_API_KEY`',
    '`svc ps` with it lists a sandbox of its organization, and without it is refused',
    async (ground) => {
      const { name } = await plainBox(ground);
      const at = { SVC_API_URL: ground.server.url };
      assert.ok((await ground.cli(['ps'], { ...at, SVC_API_KEY: ground.key })).includes(name));
      await assert.rejects(ground.cli(['ps'], at));
    },
    { covers: ['environment.SVC_API_URL'] },
  ),
  claimOnce(
    'credential.option',
    'A key that is given to the client library wins over the environment',
    'the SDK lists sandboxes with its option while the variable holds another key',
    async (ground) => {
      const before = process.env['SVC_API_KEY'];
      process.env['SVC_API_KEY'] = 'svc_another';
      try {
        const apiUrl = ground.server.url;
        const asked = new Client({ apiUrl, apiKey: ground.key }).call('sandboxes.list', {});
        assert.ok((await asked).data.length > 0);
        await assert.rejects(new Client({ apiUrl }).call('sandboxes.list', {}), { code: 'invalid_api_key' });
      } finally {
        if (before === undefined) delete process.env['SVC_API_KEY'];
        else process.env['SVC_API_KEY'] = before;
      }
    },
  ),
];
