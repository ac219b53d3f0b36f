import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { zstdCompressSync } from 'node:zlib';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError, type ErrorCode } from '@svc/contract/errors';
import { digestOf } from './digest.ts';
import { hostArchitecture } from './host-architecture.ts';
import type { ImageProgress } from './images.ts';
import { descriptor, imageOf, layerFromTar, layerOf, tarOf } from '../testing/test-layers.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { newTestStore, resolveOptions } from '../testing/test-store.ts';

const run = promisify(execFile);
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const NOTHING = { staging: [], layers: [], records: [] };

suite('pulling from a registry', () => {
  let registry: TestRegistry;
  before(async () => {
    registry = await TestRegistry.start();
  });
  after(() => registry[Symbol.asyncDispose]());
  beforeEach(() => {
    registry.auth = null;
    registry.alter = (_path, body) => body;
    registry.gate = Promise.resolve();
    registry.requests.length = 0;
  });

  test('the image says what its configuration says, and its bytes are counted while they come', async (t) => {
    const { store } = await newTestStore(t);
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 251));
    const layer = await layerOf([{ name: 'content', body }], 'none');
    const config = {
      Entrypoint: ['/init'],
      Cmd: ['run'],
      Env: ['A=1'],
      WorkingDir: '/w',
      User: '1000',
      StopSignal: 'SIGINT',
      Labels: { team: 'x' },
    };
    const image = imageOf([layer], { config, created: '2024-01-02T03:04:05.678901Z' });
    await registry.push('app', 'v1', image);
    const events: ImageProgress[] = [];
    const pulled = await store.resolve(
      `${registry.host}/app:v1`,
      resolveOptions({ onProgress: (event) => events.push(event) }),
    );
    assert.equal(pulled.id, digestOf(image.config));
    assert.equal(pulled.digest, image.digest);
    assert.equal(pulled.sizeBytes, 300_000);
    assert.equal(pulled.createdAt, '2024-01-02T03:04:05.678Z');
    assert.deepEqual(pulled.config, {
      entrypoint: ['/init'],
      cmd: ['run'],
      env: ['A=1'],
      workdir: '/w',
      user: '1000',
      labels: { team: 'x' },
      stopSignal: 'SIGINT',
    });
    assert.deepEqual(await readFile(join(pulled.layers[0] ?? '', 'content')), body);
    const last = events.findLast(({ step }) => step === 'downloading');
    assert.deepEqual(last, {
      step: 'downloading',
      doneBytes: layer.blob.length,
      totalBytes: layer.blob.length,
    });
    assert.ok(events.some(({ step }) => step === 'unpacking'));
  });

  test('layers may be gzip, zstd in several frames, or plain', async (t) => {
    const { store } = await newTestStore(t);
    const tar = await tarOf([{ name: 'frames', body: 'x'.repeat(5000) }]);
    const skippable = Buffer.from('502a4d180400000001020304', 'hex');
    const blob = Buffer.concat([
      zstdCompressSync(tar.subarray(0, 700)),
      skippable,
      zstdCompressSync(tar.subarray(700)),
      skippable,
    ]);
    const frames = { ...layerFromTar(tar, 'zstd'), blob, digest: digestOf(blob) };
    const layers = [
      await layerOf([{ name: 'a', body: 'a' }], 'gzip'),
      await layerOf([{ name: 'b', body: 'b' }], 'none'),
      frames,
    ];
    await registry.push('mixed', 'latest', imageOf(layers));
    const image = await store.resolve(`${registry.host}/mixed`, resolveOptions());
    assert.equal(image.layers.length, 3);
    assert.equal((await readFile(join(image.layers[2] ?? '', 'frames'))).length, 5000);
  });

  test('a layer that another image brought is not fetched again, nor unpacked twice', async (t) => {
    const { store, leftovers } = await newTestStore(t);
    const common = await layerOf([{ name: 'common', body: 'c' }]);
    const own = await layerOf([{ name: 'own', body: 'o' }]);
    await registry.push('first', 'latest', imageOf([common]));
    await registry.push('second', 'latest', imageOf([common, own]));
    const first = await store.resolve(`${registry.host}/first`, resolveOptions());
    const second = await store.resolve(`${registry.host}/second`, resolveOptions());
    assert.equal(second.layers[0], first.layers[0]);
    assert.equal(registry.countOf(`second/blobs/${common.digest}`), 0);
    assert.equal(registry.countOf(`second/blobs/${own.digest}`), 1);
    assert.equal((await leftovers()).layers.length, 2);
    await store.remove(`${registry.host}/second`);
    assert.equal(await readFile(join(first.layers[0] ?? '', 'common'), 'utf8'), 'c');
    assert.equal((await leftovers()).layers.length, 1);
  });

  test('a layer that occurs twice in an image is mounted once, at its uppermost place', async (t) => {
    const { store } = await newTestStore(t);
    const [a, b] = [await layerOf([{ name: 'a', body: 'a' }]), await layerOf([{ name: 'b', body: 'b' }])];
    await registry.push('twice', 'latest', imageOf([a, b, a]));
    const image = await store.resolve(`${registry.host}/twice`, resolveOptions());
    assert.deepEqual(
      image.layers.map((path) => path.includes(a.diffId.slice(7))),
      [false, true],
    );
  });

  test('from a list of manifests the one for this host is taken', async (t) => {
    const { store } = await newTestStore(t);
    const mine = imageOf([await layerOf([{ name: 'mine', body: 'x' }])]);
    const other = imageOf([await layerOf([{ name: 'other', body: 'x' }])], { architecture: 's390x' });
    await registry.push('list', 'mine', mine);
    await registry.push('list', 'other', other);
    const manifests = [
      { ...descriptor(MANIFEST, other.manifest), platform: { os: 'linux', architecture: 's390x' } },
      { ...descriptor(MANIFEST, mine.manifest), platform: { os: 'linux', architecture: hostArchitecture() } },
    ];
    const list = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests }));
    const digest = await registry.pushManifest('list', 'latest', list, INDEX);
    const image = await store.resolve(`${registry.host}/list`, resolveOptions());
    assert.equal(image.id, digestOf(mine.config));
    assert.equal(image.digest, digest);
    for (const pinned of [digest, mine.digest]) {
      assert.equal((await store.get(`${registry.host}/list@${pinned}`))?.id, image.id);
    }
    await fails(
      'invalid_image',
      /made for s390x/,
      store.resolve(`${registry.host}/list:other`, resolveOptions()),
    );
  });

  test('credentials open a private registry, and no process shows them', async (t) => {
    const { store } = await newTestStore(t);
    await registry.push('private', 'latest', imageOf([await layerOf([{ name: 'secret', body: 'x' }])]));
    registry.auth = { username: 'alice', password: 'correct horse' };
    const { promise, resolve } = Promise.withResolvers<void>();
    registry.gate = promise;
    const looking = Promise.withResolvers<void>();
    const onProgress = ({ step }: ImageProgress) => step === 'downloading' && looking.resolve();
    const pulling = store.resolve(
      `${registry.host}/private`,
      resolveOptions({ auth: registry.auth, onProgress }),
    );
    await looking.promise;
    let seen = '';
    // It stays until the layer comes.
    await waitUntil(async () => {
      seen = (await run('ps', ['-eo', 'args'])).stdout;
      return seen.includes(`docker://${registry.host}/private`);
    }, 'skopeo runs');
    resolve();
    await pulling;
    assert.ok(
      !seen.includes('correct horse') &&
        !seen.includes(Buffer.from('alice:correct horse').toString('base64')),
    );
  });

  test('each reason for a failed pull is told as it is, without secrets, and nothing is kept', async (t) => {
    const { store, leftovers } = await newTestStore(t);
    await registry.push('closed', 'latest', imageOf([await layerOf([{ name: 'x', body: 'x' }])]));
    const resolve = (name: string, password?: string) =>
      store.resolve(
        name,
        resolveOptions({ auth: password === undefined ? null : { username: 'alice', password } }),
      );
    registry.auth = { username: 'alice', password: 'correct horse' };
    await fails('image_pull_failed', /wants credentials/, resolve(`${registry.host}/closed`));
    const wrong = await fails(
      'image_pull_failed',
      /refused the credentials/,
      resolve(`${registry.host}/closed`, 'wrong horse'),
    );
    assert.ok(!JSON.stringify([wrong.message, wrong.details, String(wrong.cause)]).includes('wrong horse'));
    registry.auth = null;
    await fails('image_not_found', /does not exist in/, resolve(`${registry.host}/missing`));
    await fails('image_not_found', /does not exist in/, resolve(`${registry.host}/closed:nope`));
    await fails('image_pull_failed', /refuses connections/, resolve('127.0.0.1:1/x'));
    assert.deepEqual(await leftovers(), NOTHING);
  });

  test('a blob or manifest that was tampered with is noticed, and nothing is kept', async (t) => {
    const { store, leftovers } = await newTestStore(t);
    const image = imageOf([await layerOf([{ name: 'x', body: 'x' }])]);
    await registry.push('tampered', 'latest', image);
    const flip = (body: Buffer) =>
      Buffer.concat([body.subarray(0, -1), Buffer.from([(body.at(-1) ?? 0) ^ 1])]);
    const reference = `${registry.host}/tampered`;
    registry.alter = (path, body) => (path.includes(image.layers[0]?.digest ?? '-') ? flip(body) : body);
    await fails('invalid_image', /does not match its digest/, store.resolve(reference, resolveOptions()));
    registry.alter = (path, body) => (path.includes(digestOf(image.config)) ? flip(body) : body);
    await fails('invalid_image', /does not match its digest/, store.resolve(reference, resolveOptions()));
    registry.alter = (path, body) =>
      path.includes('/manifests/') ? Buffer.concat([body, Buffer.from(' ')]) : body;
    await fails(
      'invalid_image',
      /does not match its digest/,
      store.resolve(`${reference}@${image.digest}`, resolveOptions()),
    );
    assert.deepEqual(await leftovers(), NOTHING);
  });

  test('a layer that is not what the configuration announces is refused, and so are its siblings', async (t) => {
    const { store, leftovers } = await newTestStore(t);
    const good = await layerOf([{ name: 'good', body: 'x' }]);
    const lying = { ...(await layerOf([{ name: 'bad', body: 'x' }])), diffId: digestOf('something else') };
    await registry.push('lying', 'latest', imageOf([good, lying]));
    await fails(
      'invalid_image',
      /does not match its digest/,
      store.resolve(`${registry.host}/lying`, resolveOptions()),
    );
    assert.deepEqual(await leftovers(), NOTHING);
  });

  test('limits on layers and size hold before anything is fetched', async (t) => {
    const image = imageOf([
      await layerOf([{ name: 'a', body: 'a' }]),
      await layerOf([{ name: 'b', body: 'b' }]),
    ]);
    await registry.push('large', 'latest', image);
    const reference = `${registry.host}/large`;
    const few = await newTestStore(t, { limits: { maxLayers: 1 } });
    await fails('invalid_image', /more than 1 layers/, few.store.resolve(reference, resolveOptions()));
    const small = await newTestStore(t, { limits: { maxDownloadBytes: 100 } });
    await fails('invalid_image', /larger than 100 bytes/, small.store.resolve(reference, resolveOptions()));
    const total = await newTestStore(t, { limits: { maxEntries: 1 } });
    await fails(
      'invalid_image',
      /more than 0 files|or 1 files/,
      total.store.resolve(reference, resolveOptions()),
    );
    assert.deepEqual(await total.leftovers(), NOTHING);
  });

  test('a registry on the host itself is out of bounds unless allowed', async (t) => {
    const { store } = await newTestStore(t, { registries: {} });
    for (const host of [registry.host, 'localhost:5000', '[::1]:5000', '169.254.169.254']) {
      await fails(
        'invalid_image',
        /address of the host itself/,
        store.resolve(`${host}/x`, resolveOptions()),
      );
    }
    assert.equal(registry.requests.length, 0);
    const allowed = await newTestStore(t, { registries: { insecure: [registry.host] } });
    await fails(
      'image_not_found',
      /does not exist/,
      allowed.store.resolve(`${registry.host}/x`, resolveOptions()),
    );
  });

  test('a registry that falls silent is given up', async (t) => {
    const { store } = await newTestStore(t, {
      registries: { allowHostLocal: true, stallTimeoutMs: 300, requestTimeoutMs: 100_000 },
    });
    await registry.push('silent', 'latest', imageOf([await layerOf([{ name: 'x', body: 'x' }])]));
    const { promise, resolve } = Promise.withResolvers<void>();
    registry.gate = promise;
    await fails(
      'image_pull_failed',
      /stopped sending/,
      store.resolve(`${registry.host}/silent`, resolveOptions()),
    );
    resolve();
  });

  test('pulls over the share of a scope wait and say so, while another scope gets its image', async (t) => {
    const { store } = await newTestStore(t, {
      registries: { allowHostLocal: true, stallTimeoutMs: 100_000 },
      maxPulls: 4,
    });
    for (const name of ['one', 'two', 'three', 'theirs'])
      await registry.push(name, 'latest', imageOf([await layerOf([{ name, body: name }])]));
    const { promise, resolve } = Promise.withResolvers<void>();
    registry.gate = promise;
    const waiting = new Set<string>();
    const pull = (name: string, scope: string) => {
      const onProgress = ({ step }: ImageProgress) => void (step === 'waiting' && waiting.add(name));
      return store.resolve(`${registry.host}/${name}`, resolveOptions({ scope, onProgress }));
    };
    const mine = Promise.all(['one', 'two', 'three'].map((name) => pull(name, 'greedy')));
    await waitUntil(() => waiting.size === 1, { what: 'the third waits' });
    const theirs = pull('theirs', 'other');
    const isAsked = () => registry.countOf('/theirs/blobs/') > 0;
    await waitUntil(isAsked, { what: "another scope's layer is asked for" });
    assert.deepEqual([[...waiting], registry.countOf('/three/')], [['three'], 0]);
    resolve();
    await Promise.all([mine, theirs]);
  });

  test('names of this host are never looked for in a registry; aliases stand in while the real image is missing', async (t) => {
    const { store, scratch } = await newTestStore(t, {
      aliases: { [`${registry.host}/python`]: 'svc/python', '127.0.0.1:1/node': 'svc/node' },
    });
    await fails(
      'image_not_found',
      /build-demo/,
      store.resolve('svc/python', resolveOptions({ pullPolicy: 'always' })),
    );
    assert.equal(registry.requests.length, 0);
    const error = await fails(
      'image_pull_failed',
      /build-demo/,
      store.resolve('127.0.0.1:1/node', resolveOptions()),
    );
    assert.match(error.message, /`svc image build-demo node`/);
    const local = await store.import({ type: 'folder', path: scratch }, 'svc/python', resolveOptions());
    assert.equal((await store.resolve(`${registry.host}/python`, resolveOptions())).id, local.id);
    await registry.push('python', 'latest', imageOf([await layerOf([{ name: 'python', body: 'x' }])]));
    const real = await store.resolve(`${registry.host}/python`, resolveOptions({ pullPolicy: 'always' }));
    assert.notEqual(real.id, local.id);
    assert.equal((await store.resolve(`${registry.host}/python`, resolveOptions())).id, real.id);
  });
});

async function fails(code: ErrorCode, reason: RegExp, promise: Promise<unknown>): Promise<PlatformError> {
  const error = await promise.then(
    () => assert.fail(`expected ${code}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof PlatformError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, reason);
  return error;
}
