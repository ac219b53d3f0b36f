import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { ArchiveReader } from './archive-reader.ts';
import type { ImportSource } from './images.ts';

/** Detects the kind of image at a path. A tar is read only as far as needed. */
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
  await using archives = new ArchiveReader();
  const type = await archives.run('recognize', { path }, signal);
  return { type, path };
}
