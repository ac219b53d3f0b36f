import { firstOf, lengthOfBegun } from './find-marks.ts';

/** How every first and every last mark of the units of one interpreter begins, whoever runs them. */
export interface MarkFamilies {
  readonly first: Buffer;
  readonly last: Buffer;
}

const LENGTH_BYTES = 4;
const MORE = 0x80_00_00_00;
/** What drivers write at once. A longer piece is not from one. */
const MAX_PIECE_BYTES = 4096;
const NOTHING = Buffer.alloc(0);

/**
 * Cuts the units of others out of what is read between ours: other servers use the same interpreter, and so does whoever asks
 * again for code that ran. Code that writes such marks by itself loses its own output.
 */
export class UnitsOfOthers {
  readonly #families: MarkFamilies;
  readonly #markBytes: number;
  #state: 'none' | 'inside' | 'answer' = 'none';
  /** Bytes that may be the beginning of a mark, or of a piece. */
  #held: Buffer = NOTHING;

  constructor(families: MarkFamilies, markBytes: number) {
    this.#families = families;
    this.#markBytes = markBytes;
  }

  /** What is not of others, as far as that is known yet. */
  pass(data: Buffer): Buffer {
    if (data.length === 0) return data;
    let rest: Buffer | undefined = this.#held.length === 0 ? data : Buffer.concat([this.#held, data]);
    this.#held = NOTHING;
    const passed: Buffer[] = [];
    while (rest !== undefined && rest.length > 0) {
      rest = this.#state === 'answer' ? this.#skipPiece(rest) : this.#cut(rest, passed);
    }
    return passed.length === 1 ? (passed[0] ?? NOTHING) : Buffer.concat(passed);
  }

  /** A unit of ours begins, or nothing more comes: what is held was no mark. */
  release(): Buffer {
    const released = this.#state === 'none' ? this.#held : NOTHING;
    this.#state = 'none';
    this.#held = NOTHING;
    return released;
  }

  /** Returns what is behind the next mark, or undefined when more must come first. */
  #cut(data: Buffer, passed: Buffer[]): Buffer | undefined {
    const isOutside = this.#state === 'none';
    const sought = isOutside ? this.#families.first : this.#families.last;
    const position = firstOf(data, [sought])?.position ?? data.length - lengthOfBegun(data, sought);
    if (isOutside && position > 0) passed.push(data.subarray(0, position));
    if (data.length < position + this.#markBytes) {
      this.#held = Buffer.from(data.subarray(position));
      return undefined;
    }
    this.#state = isOutside ? 'inside' : 'answer';
    return data.subarray(position + this.#markBytes);
  }

  #skipPiece(data: Buffer): Buffer | undefined {
    const header = data.length < LENGTH_BYTES ? 0 : data.readUInt32BE(0);
    const end = LENGTH_BYTES + (header & ~MORE);
    const isNone = end > MAX_PIECE_BYTES;
    if (!isNone && data.length < end) {
      this.#held = Buffer.from(data);
      return undefined;
    }
    this.#state = isNone || header >= MORE ? 'inside' : 'none';
    return isNone ? data : data.subarray(end);
  }
}
