import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { readEnvelope } from '@svc/contract/errors';
import type { Piece } from '@svc/engine/backup';
import type { StorePlace } from '@svc/server/local';
import { UsageError } from '../usage-error.ts';

const MAIN = join(import.meta.dirname, '..', 'main.ts');
const PIECE_BYTES = 1024 * 1024;
const MAX_WORDS = 64 * 1024;

/**
 * The files of the server, read by a process that runs as the server's user: root reads nothing below that user's folder.
 * `secretsKey`: path of the key file when it is not in the data folder.
 */
export async function* serverPart(
  { dataFolder, databaseUrl }: StorePlace,
  secretsKey: string | undefined,
): AsyncGenerator<Piece> {
  const { LENGTH_BYTES, NO_FILE, SERVER_FILES } = await import('@svc/server/admin');
  const words = secretsKey === undefined ? [] : ['--secrets-key', secretsKey];
  // SAFETY: no shell; our own program, with options that were given to this one. A URL may hold a password, which the list of processes
  // must not show.
  const child = spawn(
    process.execPath,
    [
      ...process.execArgv,
      '--',
      MAIN,
      'save-server-files',
      '--output',
      'json',
      '--path',
      dataFolder,
      ...words,
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        ...(databaseUrl === undefined ? {} : { SVC_DATABASE_URL: databaseUrl }),
      },
    },
  );
  const ended = once(child, 'close') as Promise<[number | null]>;
  const output = new ExactReader(child.stdout);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-MAX_WORDS)));
  try {
    for (const name of SERVER_FILES) {
      const length = (await output.read(LENGTH_BYTES)).readBigUInt64BE();
      if (length === NO_FILE) continue;
      yield { path: `server/${name}`, sizeBytes: Number(length), data: output.pieces(Number(length)) };
    }
  } catch (error) {
    const [code] = await ended;
    throw code === 0 ? error : lastWords(said, error);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Converts the error of the other process, so that it is reported once, in the requested format. */
function lastWords(said: string, cause: unknown): Error {
  const refusal = readEnvelope(said.trim().split('\n').at(-1) ?? '');
  if (refusal?.code === 'invalid_request' && refusal.details === null) return new UsageError(refusal.message);
  if (refusal !== undefined) return refusal;
  // Node itself ended the process: its output is the only information.
  return new Error(`the files of the server could not be read${said === '' ? '' : `: ${said.trim()}`}`, {
    cause,
  });
}

/** Reads a stream in pieces of requested lengths. */
class ExactReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#chunks = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  async read(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let missing = length; missing > 0;) {
      if (this.#rest.length === 0) {
        const next = await this.#chunks.next();
        if (next.done === true) throw new Error('it ended early');
        this.#rest = next.value;
      }
      const part = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  async *pieces(length: number): AsyncGenerator<{ readonly offset: number; readonly bytes: Buffer }> {
    for (let offset = 0; offset < length;) {
      const bytes = await this.read(Math.min(PIECE_BYTES, length - offset));
      yield { offset, bytes };
      offset += bytes.length;
    }
  }
}
