import { ArchiveContents } from './archive-contents.ts';
import type { AddOptions } from './add-image.ts';
import type { ImageRecord } from './image-records.ts';
import type { ImportSource } from './images.ts';
import { importDockerArchive } from './import-docker-archive.ts';
import { importOciLayout } from './import-oci-layout.ts';
import { importRootfs } from './import-rootfs.ts';
import type { Staging } from './staging.ts';

/** Makes an image from files of this host, with the same checks as one from a registry. */
export async function importImage(
  source: ImportSource,
  reference: string,
  staging: Staging,
  options: AddOptions,
): Promise<ImageRecord> {
  if (source.type === 'folder' || source.type === 'tar') return importRootfs(source, reference, options);
  await using spool = await staging.create();
  const contents = await ArchiveContents.open(source.path, spool.path, options.limits, options.signal);
  const add = source.type === 'oci_layout' ? importOciLayout : importDockerArchive;
  return await add(contents, reference, options);
}
