import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { imageOf, layerOf } from '../testing/test-layers.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { newTestStore, resolveOptions } from '../testing/test-store.ts';

const ALICE = { username: 'alice', password: 'correct horse' };

test('scopes of an image survive a restart, and a record without scopes is public', async (t) => {
  await using registry = await TestRegistry.start();
  const { store, folder, reopen } = await newTestStore(t);
  await registry.push('private', 'latest', imageOf([await layerOf([{ name: 'secret', body: 'x' }])]));
  registry.auth = ALICE;
  const reference = `${registry.host}/private`;
  const { id } = await store.resolve(reference, resolveOptions({ auth: ALICE, scope: 'mine' }));
  const never = { pullPolicy: 'never' } as const;
  const other = resolveOptions({ ...never, scope: 'other' });

  const after = reopen();
  await assert.rejects(after.resolve(reference, other), { code: 'image_not_found' });
  assert.equal((await after.resolve(reference, resolveOptions({ ...never, scope: 'mine' }))).id, id);

  const records = join(folder, 'records');
  for (const name of await readdir(records)) {
    const { scopes, ...record }: Record<string, unknown> = JSON.parse(
      await readFile(join(records, name), 'utf8'),
    );
    assert.deepEqual(scopes, ['mine']);
    await writeFile(join(records, name), JSON.stringify(record));
  }
  assert.equal((await reopen().resolve(reference, other)).id, id);
});

test('a second scope fetches no layer again, and no password is written down', async (t) => {
  await using registry = await TestRegistry.start();
  const { store, folder } = await newTestStore(t);
  const layer = await layerOf([{ name: 'secret', body: 'x' }]);
  await registry.push('private', 'latest', imageOf([layer]));
  registry.auth = ALICE;
  const reference = `${registry.host}/private`;
  await store.resolve(reference, resolveOptions({ auth: ALICE, scope: 'mine' }));
  const before = registry.countOf(layer.digest);
  await store.resolve(reference, resolveOptions({ auth: ALICE, scope: 'other' }));
  assert.equal(registry.countOf(layer.digest), before);
  for (const name of await readdir(join(folder, 'records')))
    assert.doesNotMatch(await readFile(join(folder, 'records', name), 'utf8'), /alice|horse/);
});
