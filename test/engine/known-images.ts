import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../..');
const KEPT = join(ROOT, 'node_modules/.cache/svc-engine-images');
/** What writes and reads them. */
const SOURCES = 'packages/engine/src/{images/*,testing/test-images}.ts';

/** Gives a new data folder the images that another engine of these sources imported today; false: there are none. */
export async function takeOverImages(dataFolder: string): Promise<boolean> {
  const kept = join(KEPT, version());
  const isKept = await access(kept).then(
    () => true,
    () => false,
  );
  if (isKept) await copyFolder(kept, join(dataFolder, 'images'));
  return isKept;
}

/** Keeps the images of a new engine for the next ones. */
export async function handOnImages(dataFolder: string): Promise<void> {
  await mkdir(KEPT, { recursive: true });
  const made = await mkdtemp(join(KEPT, 'made-'));
  const images = join(made, 'images');
  await copyFolder(join(dataFolder, 'images'), images);
  // Another test may have been quicker.
  await rename(images, join(KEPT, version())).catch(() => undefined);
  await rm(made, { recursive: true, force: true });
}

async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', '--reflink=auto', from, to]);
}

/** Another day has another one, because images are removed some days after their last use. */
function version(): string {
  const hash = createHash('sha256').update(new Date().toISOString().slice(0, 10));
  hash.update(String(statSync('/bin/busybox').mtimeMs));
  for (const path of globSync(SOURCES, { cwd: ROOT }).toSorted()) hash.update(readFileSync(join(ROOT, path)));
  return hash.digest('hex').slice(0, 16);
}
