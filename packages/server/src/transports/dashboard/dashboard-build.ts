import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, resolve } from 'node:path';

/** The folder in which `make setup` builds the dashboard. */
export const DASHBOARD_FOLDER = resolve(import.meta.dirname, '../../../../dashboard/build');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
/** Compressed variants of each file in the build, best first. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

export interface BuiltFile {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  /** By name of the encoding, best first. */
  readonly encoded: ReadonlyMap<string, Buffer>;
}

/** By path relative to the folder, with `/` as the separator. */
type BuiltFiles = ReadonlyMap<string, BuiltFile>;

/**
 * Serves the built dashboard from memory. The build is read completely on the first request and then cached, so that
 * a rebuild while the server runs is not mixed with the assets of pages that are open.
 */
export class DashboardBuild {
  readonly #folder: string;
  #files: Promise<BuiltFiles | undefined> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Undefined: there is no such file, or no build yet; the latter is checked again on the next request. */
  async find(path: string): Promise<BuiltFile | undefined> {
    this.#files ??= readBuild(this.#folder);
    const files = await this.#files;
    if (files === undefined) this.#files = undefined;
    return files?.get(path);
  }
}

async function readBuild(folder: string): Promise<BuiltFiles | undefined> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = names
    .filter((entry) => entry.isFile() && TYPES[extname(entry.name)] !== undefined)
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  if (!paths.includes('index.html')) return undefined;
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await readBuilt(join(folder, path))] as const)),
  );
}

async function readBuilt(file: string): Promise<BuiltFile> {
  const plain = await readFile(file);
  const encoded = new Map<string, Buffer>();
  for (const [name, suffix] of ENCODINGS) {
    const bytes = await readFile(`${file}${suffix}`).catch(() => undefined);
    if (bytes !== undefined) encoded.set(name, bytes);
  }
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return { type: TYPES[extname(file)] ?? '', etag, plain, encoded };
}
