import { dirname, join, normalize } from 'node:path/posix';
import { pack, type Pack } from 'tar-stream';
import type { ArchiveReading } from './archive-reading.ts';
import { drained } from './drained.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';
import { drain } from './rewrite-layer.ts';
import { tarEntries, type TarEntry, type TarHeader } from './tar-entries.ts';

/** The limit for files, folders and links; an image with the most layers has a few hundred. */
const MAX_ENTRIES = 10_000;

/** Rewrites an image archive so that it contains only its files, each named by a number of ours: the original names are only keys of the answer. */
export async function numberFiles(
  archive: AsyncIterable<Buffer>,
  limits: ImageLimits,
  write: (chunk: Buffer) => void,
): Promise<ArchiveReading['number']> {
  const files = new Map<string, number>();
  const writer = pack();
  await Promise.all([numberEntries(tarEntries(archive), writer, files, limits), drain(writer, write)]);
  return [...files];
}

async function numberEntries(
  entries: AsyncIterable<TarEntry>,
  writer: Pack,
  files: Map<string, number>,
  limits: ImageLimits,
): Promise<void> {
  const links = new Map<string, string>();
  let [seen, written] = [0, 0];
  for await (const { header, body, skip } of entries) {
    seen += 1;
    if (seen > MAX_ENTRIES) throw refused(`the archive holds more than ${MAX_ENTRIES} files`);
    checkNames(header, limits);
    if (header.type === 'file') {
      const sink = writer.entry({ name: `${written}`, type: 'file', size: header.size, mode: 0o600 });
      for await (const chunk of body) if (!sink.write(chunk)) await drained(sink);
      sink.end(null);
      files.set(normalize(header.name), written);
      written += 1;
    } else {
      noteLink(links, header);
      skip();
    }
  }
  for (const [name, target] of links) {
    const file = files.get(target);
    if (file !== undefined) files.set(name, file);
  }
  writer.finalize();
}

export function checkNames({ name, linkname }: TarHeader, { maxNameBytes }: ImageLimits): void {
  const longest = Math.max(Buffer.byteLength(name), Buffer.byteLength(linkname ?? ''));
  if (longest > maxNameBytes) throw refused(`the archive holds a name of more than ${maxNameBytes} bytes`);
}

/** Older archives store a repeated layer as a link to the first occurrence. */
function noteLink(links: Map<string, string>, { name, type, linkname }: TarHeader): void {
  if (type === 'symlink') links.set(normalize(name), normalize(join(dirname(name), linkname ?? '')));
  if (type === 'link') links.set(normalize(name), normalize(linkname ?? ''));
}
