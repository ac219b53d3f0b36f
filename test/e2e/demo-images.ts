import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, existsSync, globSync, readFileSync } from 'node:fs';
import { glob, link, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { ImageView } from '@svc/contract/orchestrator';
import { descriptor } from '../../packages/engine/src/testing/test-layers.ts';
import type { TestEngine } from '../engine/start-engine.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const KEPT = join(ROOT, 'node_modules/.cache/svc-demo-images');
const OCI = 'application/vnd.oci.image';
/** Sources of the build. Only a build tests them, so a change makes the kept copies invalid. */
const SOURCES =
  'packages/engine/src/{images/*,daemon/{demo-images,find-npm,image-routes},client/engine-images}.ts';

type DemoName = 'base' | 'node' | 'python' | 'code';

/** What is kept of an image, beside the archive of its one layer. */
interface KeptImage {
  readonly architecture: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly layer: { readonly mediaType: string; readonly digest: string; readonly size: number };
}

/**
 * Adds demo images as `svc image build-demo` builds them, which takes a minute. A copy is kept until the sources of the build or the
 * version of Node change; later engines import it. Test files that need the same images at the same time build them once.
 */
export async function addDemoImages(engine: TestEngine, ...names: readonly DemoName[]): Promise<void> {
  if (!names.every(isKept)) await buildMissing(engine, names);
  for (const name of names) {
    if (!(await hasImage(engine, name))) await importDemoImage(engine, name, `svc/${name}`);
  }
}

async function buildMissing(engine: TestEngine, names: readonly DemoName[]): Promise<void> {
  await mkdir(KEPT, { recursive: true });
  const unlock = await lock(join(KEPT, 'lock'));
  try {
    const missing = names.filter((name) => !isKept(name));
    if (missing.length === 0) return;
    for (const view of await engine.client.images.buildDemoImages({ names: missing })) {
      const name = missing.find((each) => view.references.includes(`svc/${each}:latest`));
      if (name !== undefined) await keep(engine, name, view);
    }
  } finally {
    unlock();
  }
}

/** Waits for the lock, which ends with this process at the latest: `cat` reads its input until then. */
async function lock(file: string): Promise<() => void> {
  const holder = spawn('flock', [file, 'sh', '-c', 'echo locked; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  return () => holder.stdin.end();
}

function isKept(name: DemoName): boolean {
  return existsSync(folderOf(name));
}

async function hasImage({ client }: TestEngine, name: DemoName): Promise<boolean> {
  const images = await client.images.listImages();
  return images.some(({ references }) => references.includes(`svc/${name}:latest`));
}

/** Imports a kept image under another name, with changes to its configuration. */
export async function importDemoImage(
  { client }: TestEngine,
  name: DemoName,
  reference: string,
  changes: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const folder = folderOf(name);
  // Written by `keep`.
  const kept = JSON.parse(await readFile(join(folder, 'image.json'), 'utf8')) as KeptImage;
  const layout = await mkdtemp(join(KEPT, 'layout-'));
  try {
    await mkdir(join(layout, 'blobs/sha256'), { recursive: true });
    await link(join(folder, 'layer.tar'), blobOf(layout, kept.layer.digest));
    const index = { schemaVersion: 2, manifests: [await writeManifest(layout, kept, changes)] };
    await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    await writeFile(join(layout, 'index.json'), JSON.stringify(index));
    await client.images.importImage({ path: layout, reference });
  } finally {
    await rm(layout, { recursive: true, force: true });
  }
}

async function writeManifest(layout: string, { layer, ...kept }: KeptImage, changes: object) {
  const config = await writeDocument(layout, 'config', {
    architecture: kept.architecture,
    os: 'linux',
    config: { ...kept.config, ...changes },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
  });
  return await writeDocument(layout, 'manifest', { schemaVersion: 2, config, layers: [layer] });
}

async function writeDocument(layout: string, kind: string, document: object) {
  const bytes = Buffer.from(JSON.stringify(document));
  const described = descriptor(`${OCI}.${kind}.v1+json`, bytes);
  await writeFile(blobOf(layout, described.digest), bytes);
  return described;
}

function blobOf(layout: string, digest: string): string {
  return join(layout, 'blobs/sha256', digest.replace('sha256:', ''));
}

/** Keeps the layer of an image that was just built; copies of earlier recipes are removed. */
async function keep({ folder }: TestEngine, name: DemoName, view: ImageView): Promise<void> {
  await mkdir(KEPT, { recursive: true });
  const made = await mkdtemp(join(KEPT, 'made-'));
  const tar = join(made, 'layer.tar');
  await promisify(execFile)('tar', ['-C', await findLayer(folder, view.id), '-cf', tar, '.']);
  const hash = createHash('sha256');
  await pipeline(createReadStream(tar), hash);
  const { size } = await stat(tar);
  const { entrypoint, cmd, env } = view.config;
  const kept: KeptImage = {
    architecture: view.architecture,
    config: { Entrypoint: entrypoint, Cmd: cmd, Env: env },
    layer: { mediaType: `${OCI}.layer.v1.tar`, digest: `sha256:${hash.digest('hex')}`, size },
  };
  await writeFile(join(made, 'image.json'), JSON.stringify(kept));
  for await (const old of glob(`${name}-*`, { cwd: KEPT }))
    await rm(join(KEPT, old), { recursive: true, force: true });
  await rename(made, folderOf(name));
}

async function findLayer(dataFolder: string, imageId: string): Promise<string> {
  for await (const path of glob('images/records/*.json', { cwd: dataFolder })) {
    // Written by the engine.
    const { id, layers } = JSON.parse(await readFile(join(dataFolder, path), 'utf8')) as {
      readonly id: string;
      readonly layers: readonly string[];
    };
    if (id === imageId) return join(dataFolder, 'images/layers', layers.join().replace('sha256:', ''), 'fs');
  }
  throw new Error(`no record of the image ${imageId}`);
}

/** Named after what the image is made of. */
function folderOf(name: DemoName): string {
  const hash = createHash('sha256').update(process.version);
  for (const path of globSync(SOURCES, { cwd: ROOT }).toSorted()) hash.update(readFileSync(join(ROOT, path)));
  return join(KEPT, `${name}-${hash.digest('hex').slice(0, 16)}`);
}
