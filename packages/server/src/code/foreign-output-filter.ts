import { lengthOfBegun, MARK_BYTES } from './find-marks.ts';
import { readPiece } from './result-pieces.ts';

/** The common prefixes of all first and all last marks of one interpreter, for the units of every server. */
export interface MarkFamilies {
  readonly first: Buffer;
  readonly last: Buffer;
}

const NOTHING = Buffer.alloc(0);

/**
 * Removes the output of units of other servers and of repeated calls, which use the same interpreter, from the output between
 * our units. Code that writes such marks loses its own output.
 */
export class ForeignOutputFilter {
  readonly #families: MarkFamilies;
  #state: 'none' | 'inside' | 'answer' = 'none';
  /** Bytes that may be the beginning of a mark, or of a piece. */
  #held: Buffer = NOTHING;

  constructor(families: MarkFamilies) {
    this.#families = families;
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
    const found = data.indexOf(sought);
    const position = found === -1 ? data.length - lengthOfBegun(data, sought) : found;
    if (isOutside && position > 0) passed.push(data.subarray(0, position));
    if (data.length < position + MARK_BYTES) {
      this.#held = Buffer.from(data.subarray(position));
      return undefined;
    }
    this.#state = isOutside ? 'inside' : 'answer';
    return data.subarray(position + MARK_BYTES);
  }

  #skipPiece(data: Buffer): Buffer | undefined {
    const piece = readPiece(data, this.#families.last);
    if (piece === 'unfinished') {
      this.#held = Buffer.from(data);
      return undefined;
    }
    this.#state = piece !== 'none' && piece.isLast ? 'none' : 'inside';
    return piece === 'none' ? data : data.subarray(piece.end);
  }
}
