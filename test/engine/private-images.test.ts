import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { imageOf, layerOf } from '../../packages/engine/src/testing/test-layers.ts';
import { TestRegistry } from '../../packages/engine/src/testing/test-registry.ts';
import { recordsOf } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const ALICE = { username: 'alice', password: 'correct horse' };

test('an image that was pulled with credentials makes sandboxes for its scope, and for others when they have credentials', async (t) => {
  await using registry = await TestRegistry.start();
  const engine = await TestEngine.start({ args: ['--insecure-registry', registry.host] });
  t.after(() => engine.destroy());
  const { client } = engine;
  await registry.push('private', 'latest', imageOf([await layerOf([{ name: 'secret', body: 'x' }])]));
  registry.auth = ALICE;
  const reference = `${registry.host}/private:latest`;
  const spec = { image: { type: 'oci', reference } } as const;

  const pulled = await client.images.pullImage({ reference, auth: ALICE, scope: 'org-one' });
  assert.deepEqual(pulled.scopes, ['org-one']);
  const mine = await client.createSandbox({ spec, imageScope: 'org-one' });
  assert.equal(mine.image.id, pulled.id);
  for (const scope of [{ imageScope: 'org-two' }, {}]) {
    await assert.rejects(client.createSandbox({ spec, ...scope }), { code: 'image_pull_failed' });
    const never = { ...spec, pull_policy: 'never' } as const;
    await assert.rejects(client.createSandbox({ spec: never, ...scope }), { code: 'image_not_found' });
    const byId = { image: { type: 'oci', reference: pulled.id } } as const;
    await assert.rejects(client.createSandbox({ spec: byId, ...scope }), { code: 'image_not_found' });
  }
  const theirs = await client.createSandbox({ spec, imageScope: 'org-two', registryAuth: ALICE });
  assert.equal(theirs.image.id, pulled.id);
  assert.deepEqual((await client.images.getImage(reference)).scopes, ['org-one', 'org-two']);

  await client.createSnapshot({ id: 'kept', sandboxId: mine.id });
  await client.createSandbox({ spec, snapshot: 'kept', imageScope: 'org-three' });
  await client.removeSnapshot('kept');
  await assert.rejects(client.createSandbox({ spec, imageScope: 'x'.repeat(129) }), {
    code: 'invalid_request',
  });
});

test('an image is warm right after its pull, for those alone for whom it was pulled', async (t) => {
  await using registry = await TestRegistry.start();
  const engine = await TestEngine.start({
    args: ['--insecure-registry', registry.host, '--warm-adaptive', '1'],
  });
  t.after(() => engine.destroy());
  const { client } = engine;
  await registry.push('private', 'latest', imageOf([await layerOf([{ name: 'secret', body: 'x' }])]));
  registry.auth = ALICE;
  const reference = `${registry.host}/private:latest`;
  const spec = { image: { type: 'oci', reference } } as const;
  const handleOf = (id: string) => recordsOf(engine).find((record) => record.id === id)?.handle;

  await client.images.pullImage({ reference, auth: ALICE, scope: 'org-one' });
  await waitUntil(async () => (await client.pool()).waiting.length === 1, { what: 'one waits' });
  assert.equal((await client.pool()).waiting[0]?.isPrivate, true);
  const waiting = recordsOf(engine).find(({ id }) => id === null)?.handle;
  const theirs = await client.createSandbox({
    spec,
    imageScope: 'org-two',
    registryAuth: ALICE,
    start: true,
  });
  assert.notEqual(handleOf(theirs.id), waiting);
  assert.equal((await client.pool()).handedOut, 0);
  await client.removeSandbox(theirs.id);
  // What was asked for last has the one place now.
  await client.images.pullImage({ reference, auth: ALICE, scope: 'org-one' });
  const mine = await client.createSandbox({ spec, imageScope: 'org-one', start: true });
  assert.equal((await client.getSandbox(mine.id)).state, 'running');
  await client.removeSandbox(mine.id);
  await client.images.releaseImage('org-one', reference);
  await client.images.releaseImage('org-two', reference);
  assert.deepEqual(
    (await client.images.listImages()).length,
    1,
    'busybox alone: what waited does not keep it',
  );
});
