import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { normalize } from 'node:path/posix';
import { PlatformError } from '@svc/contract/errors';
import { readDecompressed } from './decompress.ts';
import type { ImportSource } from './images.ts';
import { tarEntries } from './tar-entries.ts';

/** Names that only archives of images begin with; anything else at the top is a root file system. */
const IMAGE_FILE =
  /^(?:blobs|blobs\/.*|oci-layout|index\.json|manifest\.json|repositories|[0-9a-f]{64}(?:\/.*|\.json|\.tar)?)$/;

/** Finds out what kind of thing lies at the path. A tar is read until it is clear what it is. */
export async function detectImportSource(path: string, signal: AbortSignal): Promise<ImportSource> {
  const found = await stat(path).catch((error: unknown) => {
    throw new PlatformError('invalid_image', 'There is nothing at the path to import', {
      details: { path },
      cause: error,
    });
  });
  if (found.isDirectory()) {
    const isLayout = await access(join(path, 'oci-layout')).then(
      () => true,
      () => false,
    );
    return { type: isLayout ? 'oci_layout' : 'folder', path };
  }
  return { type: await kindOfTar(path, signal), path };
}

async function kindOfTar(
  path: string,
  signal: AbortSignal,
): Promise<'tar' | 'oci_layout' | 'docker_archive'> {
  const seen = new Set<string>();
  for await (const { header, skip } of tarEntries(readDecompressed(path, signal))) {
    const name = normalize(header.name).replace(/\/$/, '');
    skip();
    if (name === '.') continue;
    if (!IMAGE_FILE.test(name)) return 'tar';
    // `docker save` writes this beside an OCI layout; its reader is the more tolerant one.
    if (name === 'manifest.json') return 'docker_archive';
    seen.add(name);
  }
  return seen.has('index.json') ? 'oci_layout' : 'tar';
}
