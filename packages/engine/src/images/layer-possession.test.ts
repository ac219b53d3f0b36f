import assert from 'node:assert/strict';
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, suite, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { imageOf, layerOf, type TestImage } from '../testing/test-layers.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { newTestStore, resolveOptions } from '../testing/test-store.ts';

const ALICE = { username: 'alice', password: 'correct horse' };
const BLOB = /\/blobs\/(sha256:[0-9a-f]{64})$/;

/** Layers are shared between images; who may have one is a matter of its bytes, or of the registry that it came from. */
suite('a layer that one scope pulled with credentials', () => {
  let home: TestRegistry;
  let evil: TestRegistry;
  let secret: TestImage;
  before(async () => {
    home = await TestRegistry.start();
    evil = await TestRegistry.start();
    secret = imageOf([await layerOf([{ name: 'secret', body: 'the plans' }])]);
  });
  after(async () => {
    await home[Symbol.asyncDispose]();
    await evil[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    for (const registry of [home, evil]) {
      registry.auth = null;
      registry.alter = (_path, body) => body;
      registry.requests.length = 0;
    }
  });

  async function pulledByVictim(t: TestContext) {
    await home.push('app', 'v1', secret);
    home.auth = ALICE;
    const { store } = await newTestStore(t);
    const reference = `${home.host}/app:v1`;
    await store.resolve(reference, resolveOptions({ auth: ALICE, scope: 'victim' }));
    return { store, reference };
  }

  /** The attacker knows every hash and holds none of these layers. */
  function withhold(layers: readonly { readonly digest: string }[]): void {
    const digests = new Set(layers.map(({ digest }) => digest));
    evil.alter = (path, body) => (digests.has(BLOB.exec(path)?.[1] ?? '') ? Buffer.alloc(body.length) : body);
  }

  test('is not given to a scope whose registry serves the same manifest without the layer', async (t) => {
    const { store } = await pulledByVictim(t);
    await evil.push('copy', 'v1', secret);
    withhold(secret.layers);
    for (const auth of [null, ALICE]) {
      evil.auth = auth;
      const options = resolveOptions({ auth, scope: 'attacker' });
      await assert.rejects(store.resolve(`${evil.host}/copy:v1`, options), { code: 'invalid_image' });
    }
    assert.equal(await store.get(`${evil.host}/copy:v1`), undefined);
  });

  test('is not given to a configuration that names it over other bytes', async (t) => {
    const { store } = await pulledByVictim(t);
    const [layer] = secret.layers;
    const junk = await layerOf([{ name: 'junk', body: 'x' }]);
    assert.ok(layer);
    await evil.push('named', 'v1', imageOf([{ ...junk, diffId: layer.diffId }]));
    const attempt = store.resolve(`${evil.host}/named:v1`, resolveOptions({ scope: 'attacker' }));
    await assert.rejects(attempt, { code: 'invalid_image' });
    assert.equal(await store.get(`${evil.host}/named:v1`), undefined);
  });

  test("does not become everybody's because its holder pulls a stranger's image that names it", async (t) => {
    const { store } = await pulledByVictim(t);
    const own = await layerOf([{ name: 'bait', body: 'x' }]);
    await evil.push('bait', 'v1', imageOf([own, ...secret.layers]));
    withhold(secret.layers);
    const attempt = store.resolve(`${evil.host}/bait:v1`, resolveOptions({ scope: 'victim' }));
    await assert.rejects(attempt, { code: 'invalid_image' });
  });

  test('a caller that has the layer does not wait for one that claims it with a slow archive', async (t) => {
    const { store, scratch } = await newTestStore(t);
    const layer = secret.layers[0] ?? assert.fail('the image has a layer');
    const [config] = [imageOf([{ ...(await layerOf([])), diffId: layer.diffId }])];
    // An archive of a docker image whose one layer is hours of nothing, under the name of the victim's.
    const folder = await claimIn(scratch, config.config);
    const abort = new AbortController();
    let isUnpacking = false;
    const onProgress = ({ step }: { readonly step: string }) => void (isUnpacking ||= step === 'unpacking');
    let isOver = false;
    const claimed = store
      .import({ type: 'docker_archive', path: folder }, 'svc/claim', { onProgress, signal: abort.signal })
      .finally(() => (isOver = true));
    claimed.catch(() => {});
    await waitUntil(() => isUnpacking, { what: 'the claim is being unpacked' });
    await home.push('app', 'v1', secret);
    await store.resolve(`${home.host}/app:v1`, resolveOptions({ scope: 'victim' }));
    assert.equal(isOver, false, 'the claim was to take longer than the pull of the layer itself');
    abort.abort(new Error('enough'));
    await assert.rejects(claimed, /enough/);
  });

  test('is given to a caller that has its bytes, and is stored once', async (t) => {
    const { store, reference } = await pulledByVictim(t);
    await evil.push('own', 'v1', secret);
    const options = resolveOptions({ scope: 'other' });
    const theirs = await store.resolve(`${evil.host}/own:v1`, options);
    const mine = await store.resolve(reference, resolveOptions({ scope: 'victim' }));
    assert.deepEqual(theirs.layers, mine.layers);
    assert.equal(await readFile(join(theirs.layers[0] ?? '', 'secret'), 'utf8'), 'the plans');
    assert.ok(evil.countOf(secret.layers[0]?.digest ?? '?') > 0, 'the layer was shown');
  });

  test('is given without a download to whom the registry that it came from gives the same manifest', async (t) => {
    const { store, reference } = await pulledByVictim(t);
    home.requests.length = 0;
    const again = await store.resolve(reference, resolveOptions({ auth: ALICE, scope: 'colleague' }));
    assert.deepEqual(again.scopes, ['colleague', 'victim']);
    assert.equal(home.countOf('/blobs/'), 0);
  });
});

/** A sparse file: half a tebibyte of zeros is a tar that never comes to its end. */
async function claimIn(scratch: string, config: Buffer): Promise<string> {
  const folder = join(scratch, 'claim');
  await mkdir(folder);
  await writeFile(join(folder, 'config.json'), config);
  await writeFile(
    join(folder, 'manifest.json'),
    JSON.stringify([{ Config: 'config.json', Layers: ['layer.tar'] }]),
  );
  await writeFile(join(folder, 'layer.tar'), '');
  await truncate(join(folder, 'layer.tar'), 2 ** 39);
  return folder;
}
