import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { allDemoImages, buildDemoImages } from './build-demo.ts';
import { MemoryImages } from '../testing/memory-images.ts';

test('demo images that exist are left alone, and nothing is fetched for them', async () => {
  const images = new MemoryImages();
  const options = { onProgress: () => assert.fail('nothing is built'), signal: AbortSignal.timeout(100_000) };
  for (const name of allDemoImages()) {
    await images.import({ type: 'folder', path: name }, name, { ...options, onProgress: () => {} });
  }
  const built = await buildDemoImages(images, {
    ...options,
    names: allDemoImages(),
    force: false,
    workFolder: '/nonexistent/work',
    nodeBinary: '/nonexistent/node',
    npmFolder: null,
    environment: {},
  });
  assert.deepEqual(
    built.flatMap(({ references }) => references),
    ['svc/base:latest', 'svc/node:latest', 'svc/python:latest', 'svc/code:latest'],
  );
});

test('a build that is called off leaves no folder and no image', async (t) => {
  const workFolder = await mkdtemp(join(tmpdir(), 'svc-build-'));
  t.after(() => rm(workFolder, { recursive: true, force: true }));
  const images = new MemoryImages();
  const abort = new AbortController();
  const building = buildDemoImages(images, {
    names: ['svc/base'],
    force: false,
    workFolder,
    nodeBinary: process.execPath,
    npmFolder: null,
    environment: {},
    // The first word of mmdebstrap comes before it asks any mirror.
    onProgress: () => abort.abort(new Error('called off')),
    signal: abort.signal,
  });
  await assert.rejects(building, /called off/);
  assert.deepEqual(await readdir(workFolder), []);
  assert.deepEqual(await images.list(), []);
});
