import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { errnoOf } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';

/** The PEM files of one end of a connection with mutual TLS. */
export interface TlsFiles {
  /** The authority that signs the certificate of the other end. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

type Contents = Readonly<Record<keyof TlsFiles, Buffer>>;

/** Reading by others, writing by the group: neither is needed by a program that owns its key. */
const FORBIDDEN_MODE = 0o027;

/**
 * The contents of such files. Files that were replaced are read again; while the new ones cannot be used, the ones before are, and
 * `onRefused` is told why, once.
 */
export class TlsCredentials {
  readonly #files: TlsFiles;
  readonly #onRefused: (error: unknown) => void;
  #contents: Contents;
  #stamp: string;

  /** @throws PlatformError `invalid_request` that names the file and the remedy */
  constructor(files: TlsFiles, onRefused: (error: unknown) => void = () => undefined) {
    this.#files = files;
    this.#onRefused = onRefused;
    this.#stamp = stampOf(files);
    this.#contents = readFiles(files);
  }

  /** The same object until a file was replaced. */
  get current(): Contents {
    const stamp = stampOf(this.#files);
    if (stamp === this.#stamp) return this.#contents;
    this.#stamp = stamp;
    try {
      this.#contents = readFiles(this.#files);
    } catch (error) {
      this.#onRefused(error);
    }
    return this.#contents;
  }
}

/** Changes when a file is written to, replaced or removed. */
function stampOf({ ca, cert, key }: TlsFiles): string {
  return [ca, cert, key]
    .map((path) => {
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats === undefined ? '-' : `${stats.ino} ${stats.mtimeMs} ${stats.size} ${stats.mode}`;
    })
    .join(', ');
}

function readFiles(files: TlsFiles): Contents {
  const contents = { ca: read(files.ca), cert: read(files.cert), key: read(files.key) };
  checkMode(files.key);
  const certificate = parse(files.cert, 'certificate', () => new X509Certificate(contents.cert));
  const authority = parse(files.ca, 'certificate', () => new X509Certificate(contents.ca));
  const key = parse(files.key, 'private key', () => createPrivateKey(contents.key));
  if (!authority.ca) throw refused(`${files.ca} is not the certificate of an authority`);
  if (!certificate.checkPrivateKey(key))
    throw refused(`the key ${files.key} does not belong to the certificate ${files.cert}`);
  return contents;
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const reason = errnoOf(error) ?? String(error);
    const who = reason === 'EACCES' ? ` by user ${process.getuid?.()}` : '';
    throw refused(`${path} cannot be read${who} (${reason})`);
  }
}

function checkMode(path: string): void {
  const mode = statSync(path).mode & 0o777;
  if ((mode & FORBIDDEN_MODE) === 0) return;
  const shown = mode.toString(8).padStart(4, '0');
  throw refused(`the key ${path} is open to other users (mode ${shown}); chmod 600 ${path}`);
}

function parse<Result>(path: string, what: string, make: () => Result): Result {
  try {
    return make();
  } catch (error) {
    throw refused(`${path} is not a ${what} in PEM`, error);
  }
}

function refused(message: string, cause?: unknown): PlatformError {
  return new PlatformError('invalid_request', message, { cause });
}
