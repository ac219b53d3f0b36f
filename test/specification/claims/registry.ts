import assert from 'node:assert/strict';
import { claimOnce, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { PRIVATE_IMAGE } from '../images.ts';

/** What a create of the image in the registry comes to. */
async function pull(ground: Ground, more: object): Promise<Json> {
  const image = { type: 'oci', reference: `${ground.registry.host}/${PRIVATE_IMAGE}` };
  const { status, body } = await ground.create(
    { image, ...more },
    '?start=true&wait_for=running&wait_timeout=90',
  );
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const WHO = { username: 'ann', password: 'correct horse' };

/** The registry asks for a password meanwhile. */
async function withPassword(ground: Ground, act: () => Promise<void>): Promise<void> {
  ground.registry.auth = WHO;
  try {
    await act();
  } finally {
    ground.registry.auth = null;
  }
}

export const registryClaims: readonly Claim[] = [
  claimOnce(
    'create.registry.mode',
    'Which password the registry is shown',
    'with the one of the request a private image is pulled and runs; the answer does not show it',
    async (ground) => {
      await withPassword(ground, async () => {
        const box = await pull(ground, { registry: { mode: 'inline', ...WHO } });
        assert.equal(box.status, 'running', box.last_failure_message);
        assert.ok(!JSON.stringify(box).includes(WHO.password));
        await ground.remove(box.id);
      });
    },
    { covers: ['create.registry.mode=inline', 'create.registry.username', 'create.registry.password'] },
  ),
  claimOnce(
    'create.registry.mode=specific',
    'A password that the organization keeps, by its id',
    'it opens the registry; an unknown id is refused by field',
    async (ground) => {
      await withPassword(ground, async () => {
        const body = { registry_host: ground.registry.host, ...WHO };
        const put = await ground.rest('PUT', '/orgs/acme/registries', { body, as: ground.token });
        const box = await pull(ground, {
          pull_policy: 'always',
          registry: { mode: 'specific', credential_id: put.body.id },
        });
        assert.equal(box.status, 'running', box.last_failure_message);
        await ground.remove(box.id);
      });
      const registry = { mode: 'specific', credential_id: '00000000-0000-4000-8000-000000000000' };
      const image = { type: 'oci', reference: `${ground.registry.host}/${PRIVATE_IMAGE}` };
      assert.equal((await ground.refusal({ image, registry })).details.field, 'registry.credential_id');
    },
    { covers: ['create.registry.credential_id'] },
  ),
  claimOnce(
    'create.registry.mode=auto',
    'The password that the organization keeps for this registry, if it does; null means the same',
    'the private image is pulled with the kept one',
    async (ground) => {
      await withPassword(ground, async () => {
        await ground.rest('PUT', '/orgs/acme/registries', {
          body: { registry_host: ground.registry.host, ...WHO },
          as: ground.token,
        });
        for (const registry of [{ mode: 'auto' }, null]) {
          const box = await pull(ground, { pull_policy: 'always', registry });
          assert.equal(box.status, 'running', box.last_failure_message);
          await ground.remove(box.id);
        }
      });
    },
    { default: '`auto`', covers: ['create.registry'] },
  ),
  claimOnce(
    'create.registry.mode=anonymous',
    'No password, even where one is kept',
    'the private image cannot be pulled',
    async (ground) => {
      await withPassword(ground, async () => {
        const box = await pull(ground, { pull_policy: 'always', registry: { mode: 'anonymous' } });
        assert.equal(box.status, 'failed');
        assert.match(box.last_failure_message, /password|credential|login/i);
      });
    },
  ),
  claimOnce(
    'create.pull_policy',
    'When the registry is asked for the image',
    'with `if_missing` the registry is not asked for an image that is here',
    async (ground) => {
      await ground.remove((await pull(ground, {})).id);
      const before = ground.registry.requests.length;
      const box = await pull(ground, { pull_policy: 'if_missing' });
      assert.deepEqual([box.status, ground.registry.requests.length], ['running', before]);
      await ground.remove(box.id);
    },
    { default: '`if_missing`', covers: ['create.pull_policy=if_missing'] },
  ),
  claimOnce(
    'create.pull_policy=always',
    'It is asked each time',
    'the registry is asked for an image that is here',
    async (ground) => {
      const before = ground.registry.requests.length;
      const box = await pull(ground, { pull_policy: 'always' });
      assert.equal(box.status, 'running', box.last_failure_message);
      assert.ok(ground.registry.requests.length > before);
      await ground.remove(box.id);
    },
  ),
  claimOnce(
    'create.pull_policy=never',
    'It is not asked: an image that is not here does not exist',
    'a start from an image that is in the registry alone fails, and the registry was not asked',
    async (ground) => {
      const before = ground.registry.requests.length;
      const image = { type: 'oci', reference: `${ground.registry.host}/never-pulled` };
      const query = '?start=true&wait_for=running&wait_timeout=90';
      const { body } = await ground.create({ image, pull_policy: 'never' }, query);
      assert.match(body.last_failure_message ?? body.error?.message, /never-pulled/);
      assert.equal(ground.registry.requests.length, before);
    },
  ),
];
