import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { PlatformError } from '@svc/contract/errors';
import { detectImportSource } from './detect-import-source.ts';
import { digestOf } from './digest.ts';
import { hexOf } from './digest.ts';
import { descriptor, imageOf, layerOf, tarOf, type TestImage } from '../testing/test-layers.ts';
import { newTestStore, resolveOptions } from '../testing/test-store.ts';

const run = promisify(execFile);
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

suite('importing', () => {
  test('a folder becomes an image with its owners and modes, and the same folder the same image', async (t) => {
    const { store, scratch } = await newTestStore(t);
    const path = join(scratch, 'root');
    await mkdir(join(path, 'etc'), { recursive: true });
    await writeFile(join(path, 'etc/secret'), 'x', { mode: 0o400 });
    await symlink('/etc/passwd', join(path, 'link'));
    await run('mkfifo', [join(path, 'pipe')]);
    const source = await detectImportSource(path, AbortSignal.timeout(100_000));
    assert.equal(source.type, 'folder');
    const image = await store.import(
      { type: 'folder', path, config: { cmd: ['/bin/x'], user: '7' } },
      'mine',
      resolveOptions(),
    );
    assert.deepEqual(image.references, ['docker.io/library/mine:latest']);
    assert.deepEqual([image.config.cmd, image.config.user, image.digest], [['/bin/x'], '7', null]);
    const [root = ''] = image.layers;
    assert.equal((await stat(join(root, 'etc/secret'))).mode & 0o7777, 0o400);
    await assert.rejects(stat(join(root, 'pipe')), /ENOENT/);
    const again = await store.import(
      { type: 'folder', path, config: { cmd: ['/bin/x'], user: '7' } },
      'twin',
      resolveOptions(),
    );
    assert.equal(again.id, image.id);
    assert.equal((await store.resolve('mine', resolveOptions({ pullPolicy: 'never' }))).id, image.id);
  });

  test('a tar becomes an image, plain or compressed', async (t) => {
    const { store, scratch } = await newTestStore(t);
    const tar = await tarOf([{ name: './' }, { name: './etc/hostname', body: 'x' }]);
    const ids = new Set<string>();
    for (const [name, bytes] of [
      ['plain', tar],
      ['gz', gzipSync(tar)],
      ['zst', zstdCompressSync(tar)],
    ] as const) {
      const path = join(scratch, name);
      await writeFile(path, bytes);
      const source = await detectImportSource(path, AbortSignal.timeout(100_000));
      assert.equal(source.type, 'tar');
      ids.add((await store.import(source, `svc/${name}`, resolveOptions())).id);
    }
    assert.equal(ids.size, 1);
    const path = join(scratch, 'xz');
    await writeFile(path, Buffer.from('fd377a585a000000', 'hex'));
    await fails(/compressed with xz/, store.import({ type: 'tar', path }, 'svc/xz', resolveOptions()));
  });

  test('an OCI layout becomes an image, as a folder and as a tar', async (t) => {
    const { store, scratch } = await newTestStore(t);
    const image = imageOf([
      await layerOf([{ name: 'a', body: 'a' }]),
      await layerOf([{ name: 'b', body: 'b' }], 'zstd'),
    ]);
    const path = join(scratch, 'layout');
    await writeLayout(path, [['v1', image]]);
    const tar = join(scratch, 'layout.tar');
    await run('tar', ['-C', path, '-cf', tar, '.']);
    for (const place of [path, tar]) {
      const source = await detectImportSource(place, AbortSignal.timeout(100_000));
      assert.equal(source.type, 'oci_layout');
      const imported = await store.import(source, 'app:v1', resolveOptions());
      assert.equal(imported.id, digestOf(image.config));
      assert.equal(imported.digest, image.digest);
      assert.equal(await readFile(join(imported.layers[1] ?? '', 'b'), 'utf8'), 'b');
      await store.prune();
    }
  });

  test('of several images in a layout the tag decides', async (t) => {
    const { store, scratch } = await newTestStore(t);
    const [one, two] = [
      imageOf([await layerOf([{ name: '1', body: '' }])]),
      imageOf([await layerOf([{ name: '2', body: '' }])]),
    ];
    await writeLayout(scratch, [
      ['one', one],
      ['two', two],
    ]);
    const source = { type: 'oci_layout', path: scratch } as const;
    assert.equal((await store.import(source, 'app:two', resolveOptions())).digest, two.digest);
    await fails(/several \(one, two\)/, store.import(source, 'app:three', resolveOptions()));
  });

  test('a docker archive becomes an image, also with layers that are links', async (t) => {
    const { store, scratch } = await newTestStore(t);
    const layer = await layerOf([{ name: 'a', body: 'a' }], 'none');
    const image = imageOf([layer, layer]);
    const config = `${hexOf(digestOf(image.config))}.json`;
    const list = [{ Config: config, RepoTags: ['app:v1'], Layers: ['1/layer.tar', '2/layer.tar'] }];
    const path = join(scratch, 'saved.tar.gz');
    const archive = await tarOf([
      { name: `${'a'.repeat(64)}/` },
      { name: `${'a'.repeat(64)}/layer.tar`, body: layer.blob },
      { name: '1/layer.tar', type: 'symlink', linkname: `../${'a'.repeat(64)}/layer.tar` },
      { name: '2/layer.tar', type: 'link', linkname: `${'a'.repeat(64)}/layer.tar` },
      { name: config, body: image.config },
      { name: 'manifest.json', body: JSON.stringify(list) },
    ]);
    await writeFile(path, gzipSync(archive));
    const imported = await store.import({ type: 'docker_archive', path }, 'app:v1', resolveOptions());
    assert.equal(imported.id, digestOf(image.config));
    assert.deepEqual(imported.layers.length, 1);
  });

  test('archives of `docker save` are recognised, in the old and the new format', async (t) => {
    const { scratch } = await newTestStore(t);
    const old = [
      { name: `${'a'.repeat(64)}/layer.tar`, body: 'x' },
      { name: `${'b'.repeat(64)}.json`, body: '{}' },
      { name: 'manifest.json', body: '[]' },
    ];
    const current = [
      { name: 'blobs/' },
      { name: `blobs/sha256/${'a'.repeat(64)}`, body: 'x' },
      { name: 'index.json', body: '{}' },
      { name: 'manifest.json', body: '[]' },
    ];
    for (const [place, entries] of [old, current].entries()) {
      const path = join(scratch, `${place}.tar`);
      await writeFile(path, await tarOf(entries));
      assert.equal((await detectImportSource(path, AbortSignal.timeout(100_000))).type, 'docker_archive');
    }
  });

  test('a broken or hostile import is refused with a reason, and nothing is kept', async (t) => {
    const { store, scratch, leftovers } = await newTestStore(t);
    const good = await layerOf([{ name: 'a', body: 'a' }]);
    const image = imageOf([good, await layerOf([{ name: '../x', body: 'x' }])]);
    await writeLayout(join(scratch, 'hostile'), [['v1', image]]);
    await fails(
      /name with \.\./,
      store.import({ type: 'oci_layout', path: join(scratch, 'hostile') }, 'app:v1', resolveOptions()),
    );
    await writeFile(join(scratch, 'hostile/blobs/sha256', hexOf(good.digest)), 'tampered');
    await fails(
      /does not match its digest/,
      store.import({ type: 'oci_layout', path: join(scratch, 'hostile') }, 'app:v1', resolveOptions()),
    );
    await writeFile(join(scratch, 'garbage'), 'x'.repeat(2000));
    await fails(
      /not an intact tar/,
      store.import({ type: 'tar', path: join(scratch, 'garbage') }, 'app', resolveOptions()),
    );
    await fails(
      /lacks "manifest.json"/,
      store.import({ type: 'docker_archive', path: join(scratch, 'hostile') }, 'app', resolveOptions()),
    );
    await fails(
      /There is no folder/,
      store.import({ type: 'folder', path: join(scratch, 'none') }, 'app', resolveOptions()),
    );
    await fails(
      /with a tag/,
      store.import({ type: 'folder', path: scratch }, `app@sha256:${'a'.repeat(64)}`, resolveOptions()),
    );
    assert.deepEqual(await leftovers(), { staging: [], layers: [], records: [] });
  });
});

async function writeLayout(path: string, images: readonly (readonly [string, TestImage])[]): Promise<void> {
  const blobs = join(path, 'blobs/sha256');
  await mkdir(blobs, { recursive: true });
  for (const [, image] of images) {
    for (const bytes of [image.manifest, image.config, ...image.layers.map(({ blob }) => blob)]) {
      await writeFile(join(blobs, hexOf(digestOf(bytes))), bytes);
    }
  }
  const manifests = images.map(([tag, image]) => ({
    ...descriptor(MANIFEST, image.manifest),
    annotations: { 'org.opencontainers.image.ref.name': tag },
  }));
  await writeFile(join(path, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  await writeFile(join(path, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
}

async function fails(reason: RegExp, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(PlatformError.is(error, 'invalid_image'), String(error));
    assert.match(error.message, reason);
    return true;
  });
}
