import { readFile, stat } from 'node:fs/promises';
import { join, normalize } from 'node:path/posix';
import { PlatformError } from '@svc/contract/errors';
import { ArchiveReader } from './archive-reader.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';

const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

/** The files of an OCI layout or a docker archive, in a folder or in a tar. */
export class ArchiveContents {
  readonly #pathOf: (name: string) => string | undefined;

  private constructor(pathOf: (name: string) => string | undefined) {
    this.#pathOf = pathOf;
  }

  /** A tar is extracted to `spool`, an empty folder that the caller removes. */
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
    await using archives = new ArchiveReader();
    const files = await archives.run('spread', { path, folder: spool, limits }, signal);
    return new ArchiveContents((name) => files.get(normalize(name)));
  }

  /** The path of a file. Throws when the archive does not contain it. */
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
