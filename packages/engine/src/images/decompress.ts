import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { PlatformError } from '@svc/contract/errors';
import { killGroup, outcomeOf, spawnConfinedOn } from './confined-command.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';
import { runDuringWaits, ProgressTimeout } from './progress-timeout.ts';

const CHUNK_BYTES = 256 * 1024;

/** The decompressed content of a file. Its first bytes decide the format, not the media type. */
export async function* readDecompressed(
  path: string,
  { maxIdleMs }: Pick<ImageLimits, 'maxIdleMs'>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  if (await isCompressed(path)) yield* readCompressed(path, maxIdleMs, signal);
  else yield* readPlain(path, signal);
}

async function* readPlain(path: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  yield* createReadStream(path, { highWaterMark: CHUNK_BYTES, signal }) as AsyncIterable<Buffer>;
}

/** Decompresses with zstd, which reads gzip too, and concatenated frames of both, as in zstd:chunked. */
async function* readCompressed(path: string, maxIdleMs: number, signal: AbortSignal): AsyncGenerator<Buffer> {
  await using file = await open(path, 'r');
  const zstd = spawnConfinedOn(file, {
    command: ['zstd', '--decompress', '--stdout', '--quiet'],
    programs: [],
    folders: [],
    workdir: '/',
    capabilities: [],
    ids: 'own',
    network: 'none',
    environment: {},
  });
  using progress = new ProgressTimeout(maxIdleMs);
  const ended = outcomeOf(zstd, AbortSignal.any([signal, progress.signal]));
  // Awaited below; until then it must not count as unhandled.
  ended.catch(() => {});
  try {
    yield* runDuringWaits(zstd.stdout as AsyncIterable<Buffer>, progress);
    const { code, stderr } = await ended;
    const reason = new Error(`zstd ended with ${code}: ${stderr.trim()}`);
    if (/^(bwrap|svc-host):/.test(stderr)) throw reason;
    if (code !== 0) throw refused('compressed data is damaged or incomplete', reason);
  } catch (error) {
    progress.signal.throwIfAborted();
    throw error;
  } finally {
    // When the reader stops early, zstd is ended.
    killGroup(zstd);
    await ended.catch(() => {});
  }
}

async function isCompressed(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(6), 0, 6, 0);
    const magic = buffer.subarray(0, bytesRead).toString('hex');
    if (magic.startsWith('1f8b')) return true;
    // A zstd frame, or a skippable frame.
    if (magic.startsWith('28b52ffd') || /^5.2a4d18/.test(magic)) return true;
    const unknown = { '425a68': 'bzip2', fd377a585a00: 'xz' };
    for (const [start, name] of Object.entries(unknown)) {
      if (magic.startsWith(start)) {
        throw new PlatformError(
          'invalid_image',
          `The archive is compressed with ${name}; use gzip, zstd or no compression`,
        );
      }
    }
    return false;
  } finally {
    await file.close();
  }
}
