import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { imageOf, layerOf, tarOf, type TestEntry } from '../../packages/engine/src/testing/test-layers.ts';
import { writeBusyboxRootfs } from '../../packages/engine/src/testing/test-images.ts';
import type { TestEngine } from './start-engine.ts';

/** Imports busybox after `change` was made to its root file system. */
export async function importChanged(
  engine: Pick<TestEngine, 'client'>,
  reference: string,
  change: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-rootfs-'));
  try {
    await writeBusyboxRootfs(folder);
    await change(folder);
    await engine.client.images.importImage({ path: folder, reference });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Imports an image of these files with a configuration, as `docker save` writes it. */
export async function importConfigured(
  engine: TestEngine,
  reference: string,
  config: Readonly<Record<string, unknown>>,
  files: readonly TestEntry[],
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-archive-'));
  try {
    const layer = await layerOf(files, 'none');
    const image = imageOf([layer], { config });
    const manifest = [{ Config: 'config.json', RepoTags: null, Layers: ['layer.tar'] }];
    const archive = await tarOf([
      { name: 'manifest.json', body: JSON.stringify(manifest) },
      { name: 'config.json', body: image.config },
      { name: 'layer.tar', body: layer.blob },
    ]);
    const path = join(folder, 'image.tar');
    await writeFile(path, archive);
    await engine.client.images.importImage({ path, reference });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
