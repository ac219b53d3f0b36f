import { normalize } from 'node:path/posix';
import type { TarKind } from './archive-reading.ts';
import type { ImageLimits } from './image-limits.ts';
import { checkNames } from './number-files.ts';
import { tarEntries } from './tar-entries.ts';

/** Top-level names that only image archives have; any other means a root file system. */
const IMAGE_FILE =
  /^(?:blobs|blobs\/.*|oci-layout|index\.json|manifest\.json|repositories|[0-9a-f]{64}(?:\/.*|\.json|\.tar)?)$/;

/** Reads a tar until its kind is known. */
export async function kindOfTar(archive: AsyncIterable<Buffer>, limits: ImageLimits): Promise<TarKind> {
  let hasIndex = false;
  for await (const { header, skip } of tarEntries(archive)) {
    checkNames(header, limits);
    const name = normalize(header.name).replace(/\/$/, '');
    skip();
    if (name === '.') continue;
    if (!IMAGE_FILE.test(name)) return 'tar';
    // `docker save` writes this beside an OCI layout; its reader is the more tolerant one.
    if (name === 'manifest.json') return 'docker_archive';
    hasIndex ||= name === 'index.json';
  }
  return hasIndex ? 'oci_layout' : 'tar';
}
