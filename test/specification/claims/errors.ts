import assert from 'node:assert/strict';
import { ERROR_STATUS, type ErrorCode } from '@svc/contract';
import { FILE_PATH_HEADER } from '@svc/contract/rest';
import { createKey } from '@svc/server/keys';
import { createLocalApiKey, setLocalQuotas } from '@svc/server/local';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claimOnce, provedBy, type Claim } from '../claim.ts';
import { dataOf, ORGANIZATION, UNKNOWN_ID, type Ground, type Reply } from '../ground.ts';
import { hostVolume } from './mounts.ts';
import { plainBox } from './record.ts';

type Ask = (ground: Ground) => Promise<Reply>;

/** A request that is answered with this code, and with the status that belongs to it. */
function answered(code: ErrorCode, says: string, how: string, ask: Ask): Claim {
  return claimOnce(`error.${code}`, says, how, async (ground) => {
    const { status, body } = await ask(ground);
    assert.deepEqual([status, body.error?.code], [ERROR_STATUS[code], code], JSON.stringify(body));
    assert.ok(body.error.message.length > 5);
  });
}

/** The same over JSON-RPC, where the code is in `data`. */
function rejected(
  code: ErrorCode,
  says: string,
  how: string,
  ask: (ground: Ground) => Promise<readonly [string, object]>,
): Claim {
  return claimOnce(`error.${code}`, says, how, async (ground) => {
    const { error } = await ground.rpc(...(await ask(ground)));
    assert.equal(dataOf({ error }).code, code, JSON.stringify(error));
  });
}

const get =
  (path: string): Ask =>
  (ground) =>
    ground.rest('GET', path);
const path = (text: string) => ({ [FILE_PATH_HEADER]: Buffer.from(text).toString('base64url') });

/** Of a sandbox that runs, below its address. */
function inPlain(method: string, below: string, body?: object): Ask {
  return async (ground) =>
    await ground.rest(
      method,
      `/sandboxes/${(await plainBox(ground)).id}${below}`,
      body === undefined ? {} : { body },
    );
}

export const requestErrorClaims: readonly Claim[] = [
  answered(
    'invalid_request',
    'The request is malformed',
    'a limit that is no number',
    get('/sandboxes?limit=x'),
  ),
  answered(
    'invalid_sandbox_config',
    'The spec asks for what cannot be',
    'a create without an image',
    (ground) => ground.rest('POST', '/sandboxes', { body: { name: 'x' } }),
  ),
  answered(
    'invalid_volume_path',
    'A path leads out of the volume',
    'a path with `..`',
    async (ground) =>
      await ground.rest('GET', `/volumes/${await hostVolume(ground)}/files/stat`, { headers: path('../x') }),
  ),
  answered('invalid_cursor', 'The cursor is of no page', 'a made-up one', get('/sandboxes?cursor=made-up')),
  rejected('invalid_image', 'The image is no image', 'a reference that is none', () =>
    Promise.resolve(['sandbox.start', { sandbox: 'bad', config: { image: 'No Image!' } }]),
  ),
  answered('invalid_api_key', 'No valid credential', 'a request without one', (ground) =>
    ground.rest('GET', '/sandboxes', { as: null }),
  ),
  answered('sign_in_failed', 'The sign-in is refused', 'a password that is wrong', (ground) =>
    ground.rest('POST', '/session', { as: null, body: { email: 'ann@example.com', password: 'guessed' } }),
  ),
  answered(
    'not_found',
    'There is nothing at this address',
    'an address that does not exist',
    get('/nowhere'),
  ),
  answered('sandbox_not_found', 'There is no such sandbox', 'an unknown id', get(`/sandboxes/${UNKNOWN_ID}`)),
  answered('volume_not_found', 'There is no such volume', 'an unknown id', (ground) =>
    ground.rest('GET', `/volumes/${UNKNOWN_ID}/files/stat`, { headers: path('x') }),
  ),
  answered(
    'volume_file_not_found',
    'There is no such file',
    'a missing path',
    async (ground) =>
      await ground.rest('GET', `/volumes/${await hostVolume(ground)}/files/stat`, {
        headers: path('missing'),
      }),
  ),
  answered('event_not_found', 'There is no such event', 'an unknown id', get(`/events/${UNKNOWN_ID}`)),
  claimOnce(
    'error.org_not_found',
    'There is no such organization',
    'a key for an unknown organization',
    async (ground) => {
      const made = createLocalApiKey({ dataFolder: ground.server.engine.folder }, 'nowhere', { name: 'x' });
      await assert.rejects(made, { code: 'org_not_found' });
    },
  ),
  answered(
    'process_not_found',
    'There is no such process',
    'an unknown id',
    inPlain('GET', `/processes/${UNKNOWN_ID}`),
  ),
  answered(
    'context_not_found',
    'There is no such code context',
    'an unknown id',
    inPlain('GET', `/contexts/${UNKNOWN_ID}`),
  ),
  answered(
    'snapshot_not_found',
    'There is no such snapshot',
    'an unknown id',
    get(`/snapshots/${UNKNOWN_ID}`),
  ),
  answered(
    'method_not_allowed',
    'The address does not take this method',
    'PUT where there is only GET and POST',
    (ground) => ground.rest('PUT', '/sandboxes'),
  ),
  answered(
    'payload_too_large',
    'The body is too large',
    'a rename of 3 MiB',
    inPlain('PATCH', '', { name: 'x'.repeat(3 << 20) }),
  ),
  answered(
    'range_not_satisfiable',
    'The range begins behind the end of the file',
    'the bytes of a file from 1 TB on',
    async (ground) =>
      await ground.rest('GET', `/sandboxes/${(await plainBox(ground)).id}/files/content?path=/etc/hosts`, {
        headers: { range: 'bytes=1000000000000-' },
      }),
  ),
  answered(
    'precondition_failed',
    'It was changed since it was read',
    'an `If-Match` of another version',
    async (ground) => {
      const { body } = await ground.create();
      return await ground.rest('PATCH', `/sandboxes/${body.id}`, {
        body: { name: ground.fresh('x') },
        headers: { 'if-match': '"99999"' },
      });
    },
  ),
];

export const stateErrorClaims: readonly Claim[] = [
  answered(
    'name_already_exists',
    'The name is taken',
    'a second create of one name',
    async (ground) => await ground.create({ name: (await plainBox(ground)).name }),
  ),
  answered(
    'invalid_state_transition',
    'The state does not allow it',
    'a start of what runs',
    inPlain('POST', '/start'),
  ),
  answered(
    'volume_in_use',
    'A sandbox has the volume mounted',
    'a delete of a volume that is mounted',
    async (ground) => {
      const { body } = await ground.rest('POST', '/volumes', { body: { name: ground.fresh('vol') } });
      await ground.running({ mounts: [{ type: 'named', name: body.name, guest: '/v' }] });
      return await ground.rest('DELETE', `/volumes/${body.id}`);
    },
  ),
  answered(
    'idempotency_conflict',
    'The same key came with another body',
    'two creates under one key',
    async (ground) => {
      const headers = { 'idempotency-key': ground.fresh('key') };
      await ground.rest('POST', '/sandboxes', { body: ground.bodyOf(), headers });
      return await ground.rest('POST', '/sandboxes', { body: ground.bodyOf(), headers });
    },
  ),
  answered(
    'sandbox_not_running',
    'The sandbox does not run',
    'a process in one that was never started',
    async (ground) => {
      const { body } = await ground.create();
      return await ground.rest('POST', `/sandboxes/${body.id}/processes`, { body: { cmd: 'true' } });
    },
  ),
  answered(
    'snapshot_ineligible',
    'No snapshot can be made of it',
    'a sandbox that was never started',
    async (ground) => {
      const { body } = await ground.create();
      return await ground.rest('POST', '/snapshots', {
        body: { kind: 'disk', sandbox_id: body.id, name: ground.fresh('snap') },
      });
    },
  ),
  answered(
    'exec_failed',
    'The command could not be started',
    'a program that is not there',
    inPlain('POST', '/processes', { cmd: '/nothere' }),
  ),
  answered(
    'quota_exceeded',
    'The quota does not allow more',
    'more memory than the organization may give to one',
    async (ground) => {
      const place = { dataFolder: ground.server.engine.folder };
      await setLocalQuotas(place, ORGANIZATION, { max_memory_mib_per_sandbox: 1024 });
      try {
        return await ground.create({ resources: { memory_mib: 1025 } });
      } finally {
        await setLocalQuotas(place, ORGANIZATION, { max_memory_mib_per_sandbox: 'plan' });
      }
    },
  ),
  claimOnce(
    'error.forbidden',
    'The credential is valid, but not for this',
    'a key of one namespace in another, over JSON-RPC',
    async (ground) => {
      const { key } = await createKey(ground.server.engine.folder, { namespace: 'only' });
      const { error } = await ground.rpc('sandbox.stop', { sandbox: 'a', namespace: 'other' }, key);
      assert.equal(dataOf({ error }).code, 'forbidden');
    },
  ),
  claimOnce(
    'error.image_in_use',
    'A sandbox uses the image',
    '`svc image rm` of an image that sandboxes are made from',
    async (ground) => {
      await plainBox(ground);
      await assert.rejects(ground.server.engine.client.images.removeImage(BUSYBOX), { code: 'image_in_use' });
    },
  ),
  rejected(
    'image_not_found',
    'There is no such image',
    'a name of this host that was not imported',
    (ground) =>
      Promise.resolve([
        'sandbox.start',
        { sandbox: ground.fresh('bad'), namespace: 'rpc', config: { image: 'svc/absent' } },
      ]),
  ),
  claimOnce(
    'error.image_pull_failed',
    'The registry could not be reached, or refused',
    'a registry that does not answer',
    async (ground) => {
      ground.registry.isReachable = false;
      try {
        const image = `${ground.registry.host}/unknown`;
        const { error } = await ground.rpc('sandbox.start', {
          sandbox: ground.fresh('bad'),
          namespace: 'rpc',
          config: { image },
        });
        assert.equal(dataOf({ error }).code, 'image_pull_failed', JSON.stringify(error));
      } finally {
        ground.registry.isReachable = true;
      }
    },
  ),
  rejected('exec_timeout', 'The command ran longer than it was given', 'one that sleeps', async (ground) => {
    const { name } = await plainBox(ground);
    return [
      'sandbox.command.run',
      { sandbox: name, namespace: ORGANIZATION, command: 'sleep', args: ['1000'], timeout: 0.5 },
    ];
  }),
  provedBy(
    'error.context_lost',
    'The state of the interpreter is gone',
    'test/e2e/code-contexts.test.ts',
    'contexts end with the run of their sandbox, and outlive the server',
  ),
  provedBy(
    'error.network_ceiling_exceeded',
    'The network policy allows more than the operator lets sandboxes reach',
    'packages/server/src/sandboxes/network-ceilings.test.ts',
    'a policy beyond the ceiling of its organization is refused by the rule, at create and by a change',
  ),
  provedBy(
    'error.rate_limited',
    'Too many requests',
    'packages/server/src/transports/rest/rest.test.ts',
    'with a rate limit every answer says what is left, and too many are refused with the time to wait',
  ),
  provedBy(
    'error.insufficient_capacity',
    'The host has no room',
    'packages/server/src/handlers/sandboxes/rest-sandboxes.test.ts',
    'a host without room is said so while it waits, and the start goes on when there is room',
  ),
  provedBy(
    'error.disk_full',
    'The volume, the disk or the host is full',
    'packages/server/src/handlers/volumes/volume-files.test.ts',
    'a volume that is full is 507 and keeps the old file',
  ),
  answered(
    'unavailable',
    'The service cannot answer now',
    'a preview on a server that has no domain for previews',
    inPlain('POST', '/previews', { port: 80 }),
  ),
  provedBy(
    'error.internal',
    'A bug of the server',
    'packages/server/src/transports/http/rest-failure.test.ts',
    'a bug is 500 internal, with the id of the request and nothing of the bug',
  ),
  provedBy(
    'error.insufficient_storage',
    'The disk of the host is full, or kept free for others',
    'packages/server/src/accounting/host-storage.test.ts',
    'calls that take space are refused with the largest users of space in the organization of the caller',
  ),
  provedBy(
    'error.start_failed',
    'The sandbox could not be started',
    'packages/engine/src/sandboxes/unwind.test.ts',
    'a runtime whose program fails while a start is being undone takes nothing else with it',
  ),
];
