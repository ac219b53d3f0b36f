import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip, createZstdDecompress, type ZstdDecompress } from 'node:zlib';
import { PlatformError } from '@svc/contract/errors';
import { drained } from './drained.ts';

type Compression = 'none' | 'gzip' | 'zstd';

const CHUNK_BYTES = 256 * 1024;

/** The content of a file, decompressed. The first bytes decide, not what a media type claims. */
export async function* readDecompressed(path: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const readers = { none: readPlain, gzip: readGzip, zstd: readZstd };
  const read = readers[await compressionOf(path)];
  try {
    yield* read(path, signal);
  } catch (error) {
    throw asDamage(error, signal);
  }
}

async function* readPlain(path: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  yield* createReadStream(path, { highWaterMark: CHUNK_BYTES, signal }) as AsyncIterable<Buffer>;
}

async function* readGzip(path: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // A failure of either stream is thrown where the last one is read, below.
  pipeline(createReadStream(path, { highWaterMark: CHUNK_BYTES, signal }), gunzip, () => {});
  yield* gunzip as AsyncIterable<Buffer>;
}

/** Node's decoder stops behind the first frame; archives that can be read in parts (zstd:chunked) have thousands. */
async function* readZstd(path: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    for (let offset = 0; offset < size;) {
      const decoder = createZstdDecompress({ chunkSize: CHUNK_BYTES });
      const feeding = feed(file, offset, decoder, signal);
      feeding.catch((error: unknown) =>
        decoder.destroy(error instanceof Error ? error : new Error(String(error))),
      );
      yield* decoder as AsyncIterable<Buffer>;
      await feeding;
      if (decoder.bytesWritten === 0) throw damaged();
      offset += decoder.bytesWritten;
    }
  } finally {
    await file.close();
  }
}

/** Writes the file from `offset` on, until the decoder has seen the end of its frame or of the file. */
async function feed(
  file: FileHandle,
  offset: number,
  decoder: ZstdDecompress,
  signal: AbortSignal,
): Promise<void> {
  let position = offset;
  for (;;) {
    signal.throwIfAborted();
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    position += bytesRead;
    if (bytesRead === 0) {
      decoder.end();
      return;
    }
    if (decoder.readableEnded || decoder.destroyed) return;
    if (!decoder.write(buffer.subarray(0, bytesRead))) await drained(decoder);
  }
}

async function compressionOf(path: string): Promise<Compression> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(6), 0, 6, 0);
    const magic = buffer.subarray(0, bytesRead).toString('hex');
    if (magic.startsWith('1f8b')) return 'gzip';
    // A frame, or a skippable frame in front of it.
    if (magic.startsWith('28b52ffd') || /^5.2a4d18/.test(magic)) return 'zstd';
    const unknown = { '425a68': 'bzip2', fd377a585a00: 'xz' };
    for (const [start, name] of Object.entries(unknown)) {
      if (magic.startsWith(start)) {
        throw new PlatformError(
          'invalid_image',
          `The archive is compressed with ${name}; use gzip, zstd or no compression`,
        );
      }
    }
    return 'none';
  } finally {
    await file.close();
  }
}

function asDamage(error: unknown, signal: AbortSignal): unknown {
  signal.throwIfAborted();
  const isDecoder = error instanceof Error && 'code' in error && /^(Z_|ZSTD_|ERR_)/.test(String(error.code));
  return isDecoder ? damaged(error) : error;
}

function damaged(cause?: unknown): PlatformError {
  return new PlatformError(
    'invalid_image',
    'The image was refused: compressed data is damaged or incomplete',
    { cause },
  );
}
