import { createHash, type Hash } from 'node:crypto';
import { PlatformError } from '@svc/contract/errors';
import {
  FORMAT,
  FRAME,
  FRAME_HEADER_BYTES,
  MAGIC,
  MAX_DATA_BYTES,
  MAX_JSON_BYTES,
  OFFSET_BYTES,
  type ArchiveEnd,
  type ArchiveHead,
  type Piece,
  type PieceData,
} from './archive-format.ts';

/** Fills a buffer from the archive, or a part of it at the end. @returns how many bytes */
export type Source = (into: Buffer) => Promise<number>;

/**
 * Reads an untrusted archive. It holds one frame in memory at a time; the archive cannot raise that limit.
 * Damaged, truncated and too new archives fail with `invalid_request` where the fault is found, at the latest behind the last piece. A caller
 * must not publish pieces before the end was read.
 */
export class ArchiveReader {
  readonly #source: Source;
  readonly #all = createHash('sha256');
  #count = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  async head(): Promise<ArchiveHead> {
    const magic = Buffer.alloc(MAGIC.length);
    const length = await this.#source(magic);
    if (length < magic.length || !magic.equals(MAGIC)) throw refused('it was not made by svc backup');
    const { type, content } = await this.#frame(null);
    if (type !== FRAME.head) throw damaged();
    const head = parse(content) as ArchiveHead;
    if (!Number.isInteger(head.format)) throw damaged();
    if (head.format > FORMAT)
      throw refused(`it is of format ${head.format}, made by a newer svc; use that one, or a newer one`);
    return head;
  }

  /** Each piece must be read to its end before the next one. */
  async *pieces(): AsyncGenerator<Piece> {
    for (;;) {
      const hash = createHash('sha256');
      const { type, content } = await this.#frame(hash);
      if (type === FRAME.end) return await this.#finish(parse(content) as ArchiveEnd);
      if (type !== FRAME.piece) throw damaged();
      const { path, sizeBytes } = parse(content) as Omit<Piece, 'data'>;
      const isSize = sizeBytes === null || (Number.isSafeInteger(sizeBytes) && sizeBytes >= 0);
      if (typeof path !== 'string' || !isSize) throw damaged();
      yield { path, sizeBytes, data: this.#data(hash, sizeBytes) };
      this.#count += 1;
    }
  }

  async *#data(hash: Hash, sizeBytes: number | null): AsyncGenerator<PieceData> {
    let place = 0;
    for (;;) {
      const { type, content } = await this.#frame(hash);
      if (type === FRAME.pieceEnd) {
        if (!hash.digest().equals(content)) throw damaged();
        this.#all.update(content);
        return;
      }
      if (type !== FRAME.data || content.length <= OFFSET_BYTES) throw damaged();
      const offset = Number(content.readBigUInt64BE());
      const bytes = content.subarray(OFFSET_BYTES);
      if (offset < place || offset + bytes.length > (sizeBytes ?? Number.MAX_SAFE_INTEGER)) throw damaged();
      place = offset + bytes.length;
      yield { offset, bytes };
    }
  }

  async #finish({ pieces, sha256 }: ArchiveEnd): Promise<void> {
    if (pieces !== this.#count || sha256 !== this.#all.digest('hex')) throw damaged();
    if ((await this.#source(Buffer.alloc(1))) !== 0) throw damaged();
  }

  /** The checksum frame is not part of the bytes that it covers. */
  async #frame(hash: Hash | null): Promise<{ readonly type: number; readonly content: Buffer }> {
    const header = await this.#exactly(FRAME_HEADER_BYTES);
    const type = header.readUInt8();
    const length = header.readUInt32BE(1);
    if (length > (type === FRAME.data ? OFFSET_BYTES + MAX_DATA_BYTES : MAX_JSON_BYTES)) throw damaged();
    const content = await this.#exactly(length);
    if (type !== FRAME.pieceEnd) hash?.update(header).update(content);
    return { type, content };
  }

  async #exactly(length: number): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    if ((await this.#source(bytes)) < length) throw refused('it is cut off; take another copy of it');
    return bytes;
  }
}

/** The values are unchecked input: callers validate each field before they use it. */
function parse(content: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(content.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Reported below.
  }
  throw damaged();
}

function damaged(): PlatformError {
  return refused('it is damaged; take another copy of it');
}

export function refused(why: string): PlatformError {
  return new PlatformError('invalid_request', `the backup cannot be restored: ${why}. Nothing was changed`);
}
