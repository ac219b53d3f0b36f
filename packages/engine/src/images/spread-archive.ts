import { writeFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path/posix';
import type { ImageLimits } from './image-limits.ts';
import { readArchive } from './layer-archive.ts';
import { refused } from './oci-documents.ts';
import { tarEntries, type TarHeader } from './tar-entries.ts';
import { measured } from './unpack-layer.ts';

/** Files, folders and links; an image of the most layers has a few hundred. */
const MAX_ENTRIES = 10_000;

/**
 * Writes each file of an archive of an image to `folder`, under a number of our own, and tells which is which: the names in the archive
 * are keys of a map and nothing else.
 */
export async function spreadArchive(
  path: string,
  folder: string,
  limits: ImageLimits,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  const links = new Map<string, string>();
  let entries = 0;
  const archive = readArchive({ type: 'file', path, digest: null }, limits, signal);
  for await (const { header, body, skip } of tarEntries(measured(archive, null, folder, limits, signal))) {
    entries += 1;
    if (entries > MAX_ENTRIES) throw refused(`the archive holds more than ${MAX_ENTRIES} files`);
    checkNames(header, limits);
    if (header.type === 'file') {
      const target = join(folder, `${files.size}`);
      // SAFETY: the name is a number of ours in an empty private folder; `wx` follows no link.
      await writeFile(target, body, { mode: 0o600, flag: 'wx', signal });
      files.set(normalize(header.name), target);
    } else {
      noteLink(links, header);
      skip();
    }
  }
  for (const [name, target] of links) {
    const file = files.get(target);
    if (file !== undefined) files.set(name, file);
  }
  return files;
}

export function checkNames({ name, linkname }: TarHeader, { maxNameBytes }: ImageLimits): void {
  const longest = Math.max(Buffer.byteLength(name), Buffer.byteLength(linkname ?? ''));
  if (longest > maxNameBytes) throw refused(`the archive holds a name of more than ${maxNameBytes} bytes`);
}

/** Older archives store a layer that occurs twice as a link to the first. */
function noteLink(links: Map<string, string>, { name, type, linkname }: TarHeader): void {
  if (type === 'symlink') links.set(normalize(name), normalize(join(dirname(name), linkname ?? '')));
  if (type === 'link') links.set(normalize(name), normalize(linkname ?? ''));
}
