import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { PlatformError } from '@svc/contract/errors';
import { ImageHolds } from './image-holds.ts';
import { imageOf, layerFromTar, layerOf, tarOf } from '../testing/test-layers.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { folderSource, newTestStore, resolveOptions } from '../testing/test-store.ts';

const MIB = 1024 ** 2;

let registry: TestRegistry;
before(async () => {
  registry = await TestRegistry.start();
});
after(() => registry[Symbol.asyncDispose]());

test('a layer that two images share counts once for a scope', async (t) => {
  const { store } = await newTestStore(t);
  const shared = await layerOf([{ name: 'shared', body: Buffer.alloc(MIB, 'x') }]);
  const own = await layerOf([{ name: 'own', body: Buffer.alloc(MIB, 'y') }]);
  await registry.push('share/one', 'latest', imageOf([shared]));
  await registry.push('share/two', 'latest', imageOf([shared, own]));
  for (const name of ['one', 'two'])
    await store.resolve(`${registry.host}/share/${name}:latest`, resolveOptions({ scope: 'mine' }));
  const { storedBytes } = await store.held('mine');
  assert.ok(storedBytes >= 2 * MIB && storedBytes < 2.1 * MIB, String(storedBytes));
});

test('files without content count too', async (t) => {
  const { store } = await newTestStore(t);
  const files = Array.from({ length: 500 }, (_, index) => ({ name: `empty${index}`, body: '' }));
  await registry.push('many', 'latest', imageOf([await layerOf(files)]));
  await store.resolve(`${registry.host}/many:latest`, resolveOptions({ scope: 'mine' }));
  assert.ok((await store.held('mine')).storedBytes >= 500 * 4096);
});

test('a pull ends as soon as it is more than its scope may hold, and leaves nothing', async (t) => {
  const { store, leftovers } = await newTestStore(t);
  await registry.push(
    'large',
    'latest',
    imageOf([await layerOf([{ name: 'large', body: Buffer.alloc(8 * MIB, 'x') }])]),
  );
  const pull = store.resolve(
    `${registry.host}/large:latest`,
    resolveOptions({ scope: 'mine', maxHeldBytes: MIB }),
  );
  await assert.rejects(pull, (error) => {
    assert.ok(PlatformError.is(error, 'quota_exceeded'));
    // So much had come of it; it would have been eight.
    assert.ok(Number(error.details?.['value']) * 1024 < 4, JSON.stringify(error.details));
    return true;
  });
  assert.deepEqual(await leftovers(), { staging: [], layers: [], records: [] });
  assert.equal((await store.held('mine')).storedBytes, 0);
});

test('a layer that unpacks to much more than was sent is refused, unless the operator allows it', async (t) => {
  const bomb = await tarOf([{ name: 'zeros', body: Buffer.alloc(80 * MIB) }]);
  const layer = layerFromTar(bomb, 'gzip');
  assert.ok(gzipSync(bomb).length < MIB / 2);
  await registry.push('bomb', 'latest', imageOf([layer]));
  const reference = `${registry.host}/bomb:latest`;
  const { store, leftovers } = await newTestStore(t);
  await assert.rejects(store.resolve(reference, resolveOptions()), (error) => {
    assert.ok(PlatformError.is(error, 'invalid_image'));
    assert.match(error.message, /100 times.*--max-unpack-ratio/);
    return true;
  });
  assert.deepEqual(await leftovers(), { staging: [], layers: [], records: [] });
  const { store: lenient } = await newTestStore(t, { limits: { maxUnpackRatio: 2000 } });
  await lenient.resolve(reference, resolveOptions());
});

test('a few bytes may become a few: what is small is not weighed', async (t) => {
  const { store } = await newTestStore(t);
  await registry.push(
    'zeros',
    'latest',
    imageOf([await layerOf([{ name: 'zeros', body: Buffer.alloc(4 * MIB) }])]),
  );
  await store.resolve(`${registry.host}/zeros:latest`, resolveOptions());
});

test('holds outlive a restart, damaged ones and those of no image do not', async (t) => {
  const { store, folder, scratch, reopen } = await newTestStore(t);
  await registry.push('kept', 'latest', imageOf([await layerOf([{ name: 'kept', body: 'kept' }])]));
  await store.resolve(`${registry.host}/kept:latest`, resolveOptions({ scope: 'mine' }));
  await store.import(await folderSource(scratch, 'one'), 'svc/one', resolveOptions());
  const before = await store.held('mine');
  const holds = join(folder, 'holds');
  const [first = assert.fail()] = await readdir(holds);
  await copyFile(join(holds, first), join(holds, `${'b'.repeat(64)}.json`));
  await writeFile(join(holds, `${'a'.repeat(64)}.json`), '{"torn');
  const second = reopen();
  assert.deepEqual(await second.held('mine'), before);
  assert.equal((await readdir(holds)).length, 2);
  await rm(join(folder, 'records'), { recursive: true });
  const third = reopen();
  await third.recover();
  assert.deepEqual(await readdir(holds), []);
});

test("images from before there were holds are the operator's, also when their first holds were half written", async (t) => {
  const { store, folder, scratch, reopen } = await newTestStore(t);
  const { id } = await store.import(await folderSource(scratch, 'one'), 'svc/one', resolveOptions());
  await rm(join(folder, 'holds'), { recursive: true });
  await mkdir(join(folder, 'holds.new'));
  const second = reopen();
  assert.deepEqual(await second.collect(0), []);
  assert.deepEqual(
    (await second.held('mine')).images.map(({ image }) => image.id),
    [id],
  );
});

test('an image that is being returned to a caller is not collected', async (t) => {
  const { store, inUse } = await newTestStore(t);
  await registry.push('race', 'latest', imageOf([await layerOf([{ name: 'race', body: 'race' }])]));
  const reference = `${registry.host}/race:latest`;
  await store.resolve(reference, resolveOptions({ scope: 'mine' }));
  for (let round = 0; round < 50; round++) {
    const given = store.resolve(reference, resolveOptions({ scope: `scope ${round}`, pullPolicy: 'never' }));
    const counted = given.then(({ id }) => void inUse.add(id));
    const collected = await store.collect(0);
    await counted;
    assert.deepEqual(collected, [], `round ${round}`);
    inUse.clear();
    assert.ok((await store.get(reference)) !== undefined);
  }
});

test('a hold that several write at once is written whole, by each', async (t) => {
  const folder = join(await mkdtemp(join(tmpdir(), 'svc-holds-')), 'holds');
  t.after(() => rm(dirname(folder), { recursive: true }));
  const holds = new ImageHolds(folder, () => 0);
  await holds.load(() => []);
  const image = { id: `sha256:${'a'.repeat(64)}`, layers: [] };
  await holds.take('mine', image, null);
  await Promise.all(Array.from({ length: 20 }, () => holds.refresh(image.id, 0)));
  await Promise.all([holds.refresh(image.id, 0), holds.drop('mine', image.id)]);
  assert.deepEqual(await readdir(folder), []);
});
