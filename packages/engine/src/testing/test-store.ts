import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ImageStore, type ImageStoreOptions } from '../images/image-store.ts';
import type { ImportSource, ResolveOptions } from '../images/images.ts';

export interface TestStore {
  readonly folder: string;
  readonly store: ImageStore;
  readonly inUse: Set<string>;
  /** A second store on the same folder, as after a restart. */
  readonly reopen: () => ImageStore;
  /** A private folder for files that the test needs beside the store. */
  readonly scratch: string;
  /** The files on disk, by kind. */
  readonly leftovers: () => Promise<{ staging: string[]; layers: string[]; records: string[] }>;
}

/** An empty store that is removed with the test. It may pull from this machine's own addresses. */
export async function newTestStore(
  t: TestContext,
  options: Partial<ImageStoreOptions> = {},
): Promise<TestStore> {
  const base = await mkdtemp(join(tmpdir(), 'svc-images-'));
  t.after(() => rm(base, { recursive: true, force: true }));
  const folder = join(base, 'store');
  const scratch = join(base, 'scratch');
  await mkdir(scratch);
  const inUse = new Set<string>();
  const reopen = () =>
    new ImageStore({
      folder,
      isInUse: (id, scope) => inUse.has(scope === undefined ? id : `${scope} ${id}`),
      registries: { allowHostLocal: true },
      ...options,
    });
  const names = (kind: string) => readdir(join(folder, kind)).catch(() => []);
  const leftovers = async () => ({
    staging: await names('staging'),
    layers: await names('layers'),
    records: await names('records'),
  });
  return { folder, store: reopen(), inUse, reopen, scratch, leftovers };
}

export function resolveOptions(changes: Partial<ResolveOptions> = {}): ResolveOptions {
  const defaults = { pullPolicy: 'if_missing', auth: null, scope: null, onProgress: () => {} } as const;
  return { ...defaults, signal: AbortSignal.timeout(100_000), ...changes };
}

/** A folder with one file of that content. */
export async function folderSource(scratch: string, content: string): Promise<ImportSource> {
  const path = join(scratch, Buffer.from(content).toString('hex'));
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'content'), content);
  return { type: 'folder', path };
}
