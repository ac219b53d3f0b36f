import assert from 'node:assert/strict';
import { FILE_PATH_HEADER } from '@svc/contract/rest';
import { claim, claimOnce, type Claim } from '../claim.ts';
import { ORGANIZATION, UNKNOWN_ID, type Ground, type Json } from '../ground.ts';
import { hostVolume } from './mounts.ts';
import { plainBox } from './record.ts';

function at(path: string): Record<string, string> {
  return { [FILE_PATH_HEADER]: Buffer.from(path).toString('base64url') };
}

async function put(ground: Ground, volume: string, headers: Record<string, string>, as?: string | null) {
  const parts = { headers, body: Buffer.from([0, 255, 10]), ...(as === undefined ? {} : { as }) };
  return await ground.rest('PUT', `/volumes/${volume}/files/content`, parts);
}

export const bodyClaims: readonly Claim[] = [
  claimOnce(
    'message_response.message',
    'A sentence that says what was done, where there is nothing else to answer',
    'a delete',
    async (ground) => {
      const { body } = await ground.create();
      const reply = await ground.rest('DELETE', `/sandboxes/${body.id}`);
      assert.deepEqual(Object.keys(reply.body), ['message']);
      assert.match(reply.body.message, /\w+ \w+/);
    },
  ),
  claimOnce(
    'confirmation.ok',
    'True when a file operation has succeeded',
    'a file that was written',
    async (ground) => {
      assert.deepEqual((await put(ground, await hostVolume(ground), at('ok'))).body, { ok: true });
    },
  ),
  claimOnce(
    'headers.x-svc-file-path',
    'The path in the volume, URL-safe base64 of its UTF-8',
    'a file with an odd name is read back and listed; without the header, or with an absolute path, it is 400',
    async (ground) => {
      const volume = await hostVolume(ground);
      assert.equal((await put(ground, volume, at('öd d?/f'))).status, 200);
      const { body } = await ground.rest('GET', `/volumes/${volume}/files`, { headers: at('öd d?') });
      assert.deepEqual(
        body.entries.map(({ path }: Json) => path),
        ['öd d?/f'],
      );
      assert.equal((await put(ground, volume, {})).body.error.code, 'invalid_request');
      assert.equal((await put(ground, volume, at('/etc/x'))).body.error.code, 'invalid_volume_path');
    },
  ),
  claimOnce(
    'header.x-msb-file-path',
    'The same header under its older name is taken too',
    'a file that was written with it',
    async (ground) => {
      const headers = { 'x-msb-file-path': Buffer.from('older').toString('base64url') };
      assert.deepEqual((await put(ground, await hostVolume(ground), headers)).body, { ok: true });
    },
  ),
  claimOnce(
    'rule.error-envelope',
    'Every answer that is no success is `{error: {code, message, details}}`',
    'its keys on 400, 401, 404, 405 and 409',
    async (ground) => {
      const { id } = (await ground.create()).body;
      const replies = [
        await ground.create({ unknown: 1 }),
        await ground.rest('GET', '/sandboxes', { as: null }),
        await ground.rest('GET', `/sandboxes/${UNKNOWN_ID}`),
        await ground.rest('GET', '/nowhere'),
        await ground.rest('PUT', '/sandboxes'),
        await ground.rest('POST', `/sandboxes/${id}/stop`),
      ];
      assert.deepEqual(
        replies.map(({ status }) => status),
        [400, 401, 404, 404, 405, 409],
      );
      for (const { body } of replies) {
        assert.deepEqual(Object.keys(body), ['error']);
        assert.deepEqual(Object.keys(body.error), ['code', 'message', 'details']);
        assert.ok(body.error.details === null || typeof body.error.details === 'object');
      }
    },
  ),
  claimOnce(
    'rule.nothing-ignored',
    'An unknown field or query parameter is 400 and named',
    'a create with one, at the top and deep inside, and a list with one',
    async (ground) => {
      assert.equal((await ground.refusal({ colour: 'red' })).details.field, 'colour');
      assert.equal((await ground.refusal({ resources: { cpus: 1 } })).details.field, 'resources.cpus');
      const { status, body } = await ground.rest('GET', '/sandboxes?colour=red');
      assert.deepEqual([status, body.error.details.field], [400, 'colour']);
    },
  ),
  claimOnce(
    'header.idempotency-key',
    'A request that is repeated under one key is done once',
    'a second create answers the first sandbox and says so; with another body it is 409',
    async (ground) => {
      const headers = { 'idempotency-key': ground.fresh('key') };
      const body = ground.bodyOf();
      const [one, two] = [
        await ground.rest('POST', '/sandboxes', { body, headers }),
        await ground.rest('POST', '/sandboxes', { body, headers }),
      ];
      assert.equal(two.body.id, one.body.id);
      assert.deepEqual(
        [one.headers.get('idempotency-replayed'), two.headers.get('idempotency-replayed')],
        [null, 'true'],
      );
      const other = await ground.rest('POST', '/sandboxes', { body: ground.bodyOf(), headers });
      assert.deepEqual([other.status, other.body.error.code], [409, 'idempotency_conflict']);
    },
  ),
  claimOnce(
    'header.x-request-id',
    'Every answer names its request',
    'the header of a success and of a failure',
    async (ground) => {
      for (const path of ['/sandboxes', '/nowhere'])
        assert.ok((await ground.rest('GET', path)).headers.get('x-request-id'));
    },
  ),
];

export const endpointClaims: readonly Claim[] = [
  claim(
    'endpoint.delete-by-name',
    '`DELETE /v1/sandboxes/by-name/{name}` stops and destroys; 401 without a key, 404 without such a name',
    'a running sandbox is gone from the engine; the codes of the failures',
    async (ground) => {
      const { id, name } = await ground.running();
      const path = `/sandboxes/by-name/${name}`;
      const refused = await ground.rest('DELETE', path, { as: null });
      assert.deepEqual([refused.status, refused.body.error.code], [401, 'invalid_api_key']);
      const { status, body } = await ground.rest('DELETE', path);
      assert.deepEqual([status, Object.keys(body)], [200, ['message']]);
      await ground.untilEngineForgot(id);
      const again = await ground.rest('DELETE', path);
      assert.deepEqual([again.status, again.body.error.code], [404, 'sandbox_not_found']);
    },
  ),
  claim(
    'endpoint.stop',
    '`POST /v1/orgs/{slug}/sandboxes/{sandbox_id}/stop` takes a personal access token and answers the record',
    'the sandbox stops; an API key is refused there',
    async (ground) => {
      const box = await ground.running();
      const path = `/orgs/${ORGANIZATION}/sandboxes/${box.id}/stop`;
      assert.equal((await ground.rest('POST', path)).status, 401);
      const { status, body } = await ground.rest('POST', path, { as: ground.token });
      assert.deepEqual(
        [status, body.id, body.status, body.spec.image],
        [200, box.id, 'stopping', box.spec.image],
      );
      await ground.until(box.id, 'stopped');
    },
  ),
  claim(
    'endpoint.volume-content',
    '`PUT /v1/volumes/{id}/files/content` writes raw bytes; 400, 401 and 404 where they belong',
    'the bytes are read back, and inside a sandbox; the codes of the failures',
    async (ground) => {
      const { body: volume } = await ground.rest('POST', '/volumes', { body: { name: ground.fresh('vol') } });
      const headers = { ...at('raw'), 'content-type': 'application/octet-stream' };
      assert.deepEqual((await put(ground, volume.id, headers)).body, { ok: true });
      const box = await ground.running({ mounts: [{ type: 'named', name: volume.name, guest: '/v' }] });
      assert.equal(await ground.seen(box, 'od -An -tx1 /v/raw'), ' 00 ff 0a');
      await ground.remove(box.id);
      const failures = [
        [await put(ground, volume.id, {}), 400, 'invalid_request'],
        [await put(ground, volume.id, at('x'), null), 401, 'invalid_api_key'],
        [await put(ground, UNKNOWN_ID, at('x')), 404, 'volume_not_found'],
      ] as const;
      for (const [reply, status, code] of failures)
        assert.deepEqual([reply.status, reply.body.error.code], [status, code]);
    },
  ),
  claimOnce(
    'endpoint.list',
    '`GET /v1/sandboxes` answers a page to the bearer of a key',
    '200 with the key, 401 without',
    async (ground) => {
      assert.equal((await ground.rest('GET', '/sandboxes')).status, 200);
      assert.equal((await ground.rest('GET', '/sandboxes', { as: null })).status, 401);
    },
  ),
  claimOnce(
    'endpoint.usage',
    '`GET /v1/billing/usage/sandbox` answers rows and the sandboxes that they name; 401 without a key',
    'its keys, and that every row has its sandbox',
    async (ground) => {
      await plainBox(ground);
      const { status, body } = await ground.rest('GET', '/billing/usage/sandbox');
      assert.deepEqual([status, Object.keys(body)], [200, ['rows', 'sandboxes']]);
      const known = new Set(body.sandboxes.map(({ id }: Json) => id));
      for (const { sandbox_id: id } of body.rows) assert.ok(known.has(id));
      const refused = await ground.rest('GET', '/billing/usage/sandbox', { as: null });
      assert.deepEqual([refused.status, refused.body.error.code], [401, 'invalid_api_key']);
    },
  ),
];
