import { readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path/posix';
import { PlatformError } from '@svc/contract/errors';
import { readDecompressed } from './decompress.ts';
import type { ImageLimits } from './image-limits.ts';
import { refused } from './oci-documents.ts';
import { tarEntries, type TarHeader } from './tar-entries.ts';

const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;
const MAX_FILES = 10_000;

/** The files of an OCI layout or a docker archive, whether they lie in a folder or in a tar. */
export class ArchiveContents {
  readonly #pathOf: (name: string) => string | undefined;

  private constructor(pathOf: (name: string) => string | undefined) {
    this.#pathOf = pathOf;
  }

  /** A tar is spread out in `spool`, an empty folder that the caller removes. */
  static async open(
    path: string,
    spool: string,
    limits: ImageLimits,
    signal: AbortSignal,
  ): Promise<ArchiveContents> {
    const found = await stat(path).catch(() => null);
    if (found === null)
      throw new PlatformError('invalid_image', 'There is nothing at the path to import', {
        details: { path },
      });
    // SAFETY: callers ask for fixed names and for `blobs/sha256/` with checked hex digits, so the joined path stays inside.
    if (found.isDirectory()) return new ArchiveContents((name) => join(path, name));
    const files = await spread(path, spool, limits, signal);
    return new ArchiveContents((name) => files.get(normalize(name)));
  }

  /** Where the file lies. Throws when the archive does not hold it. */
  path(name: string): string {
    const path = this.#pathOf(name);
    if (path === undefined) throw refused(`the archive lacks ${JSON.stringify(name.slice(0, 200))}`);
    return path;
  }

  async read(name: string): Promise<Buffer> {
    const path = this.path(name);
    const { size } = await stat(path).catch(() => ({ size: -1 }));
    if (size === -1) throw refused(`the archive lacks ${JSON.stringify(name.slice(0, 200))}`);
    if (size > MAX_DOCUMENT_BYTES) throw refused(`${JSON.stringify(name.slice(0, 200))} is too large`);
    return readFile(path);
  }
}

/** Writes each file under a number of our own; the names in the archive are keys of a map and nothing else. */
async function spread(
  path: string,
  spool: string,
  limits: ImageLimits,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const links = new Map<string, string>();
  let bytes = 0;
  for await (const { header, body, skip } of tarEntries(readDecompressed(path, signal))) {
    bytes += header.size;
    if (bytes > limits.maxUnpackedBytes || files.size > MAX_FILES)
      throw refused('the archive holds too much');
    if (header.type === 'file') {
      const target = join(spool, `${files.size}`);
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

/** Older archives store a layer that occurs twice as a link to the first. */
function noteLink(links: Map<string, string>, { name, type, linkname }: TarHeader): void {
  if (type === 'symlink') links.set(normalize(name), normalize(join(dirname(name), linkname ?? '')));
  if (type === 'link') links.set(normalize(name), normalize(linkname ?? ''));
}
