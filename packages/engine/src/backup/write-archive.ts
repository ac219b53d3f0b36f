import { createHash, type Hash } from 'node:crypto';
import {
  FORMAT,
  FRAME,
  FRAME_HEADER_BYTES,
  MAGIC,
  OFFSET_BYTES,
  type ArchiveEnd,
  type ArchiveHead,
  type Piece,
} from './archive-format.ts';

/** Writes bytes; resolves when the sink is ready for more. */
export type Sink = (bytes: Buffer) => Promise<void>;

/**
 * Writes an archive to its end, one piece after the other, with one frame in memory at a time. `onPiece` is called with each piece before
 * its bytes. @returns how many pieces it holds
 */
export async function writeArchive(
  head: Omit<ArchiveHead, 'format'>,
  pieces: AsyncIterable<Piece>,
  sink: Sink,
  onPiece: (path: string) => void = () => {},
): Promise<number> {
  await sink(MAGIC);
  await sink(frame(FRAME.head, json({ format: FORMAT, ...head })));
  const all = createHash('sha256');
  let count = 0;
  for await (const piece of pieces) {
    onPiece(piece.path);
    all.update(await writePiece(piece, sink));
    count += 1;
  }
  const end: ArchiveEnd = { pieces: count, sha256: all.digest('hex') };
  await sink(frame(FRAME.end, json(end)));
  return count;
}

/** @returns its checksum */
async function writePiece({ path, sizeBytes, data }: Piece, sink: Sink): Promise<Buffer> {
  const hash = createHash('sha256');
  await send(FRAME.piece, json({ path, sizeBytes }), hash, sink);
  for await (const { offset, bytes } of data) {
    const place = Buffer.alloc(OFFSET_BYTES);
    place.writeBigUInt64BE(BigInt(offset));
    await send(FRAME.data, Buffer.concat([place, bytes]), hash, sink);
  }
  const digest = hash.digest();
  await sink(frame(FRAME.pieceEnd, digest));
  return digest;
}

async function send(type: number, content: Buffer, hash: Hash, sink: Sink): Promise<void> {
  const whole = frame(type, content);
  hash.update(whole);
  await sink(whole);
}

function frame(type: number, content: Buffer): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUInt8(type);
  header.writeUInt32BE(content.length, 1);
  return Buffer.concat([header, content]);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
