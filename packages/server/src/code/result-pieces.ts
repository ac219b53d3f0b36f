import { MAX_FORM_BYTES } from '@svc/contract';

const LENGTH_BYTES = 4;
const MORE = 0x80_00_00_00;
/** A pipe takes this much in one write, with mark and length. */
const MAX_PIECE_BYTES = 4096;
/** The largest form, with room for the other forms and for metadata. */
const MAX_WHOLE_BYTES = 2 * MAX_FORM_BYTES;

/** What a driver sends about one value; null when it is larger than a driver sends. */
export type ResultBytes = Buffer | null;

/** `none`: not written by a driver. */
export type Piece =
  | { readonly end: number; readonly bytes: Buffer; readonly isLast: boolean }
  | 'unfinished'
  | 'none';

/** Parses the piece behind a mark. No driver writes the last mark inside of a piece; code that does ends its own unit. */
export function readPiece(data: Buffer, last: Buffer): Piece {
  if (data.length < LENGTH_BYTES) return 'unfinished';
  const header = data.readUInt32BE(0);
  const isLast = header < MORE;
  const length = isLast ? header : header - MORE;
  if (length > MAX_PIECE_BYTES) return 'none';
  const end = LENGTH_BYTES + length;
  if (data.subarray(LENGTH_BYTES, end).includes(last)) return 'none';
  return data.length < end ? 'unfinished' : { end, bytes: data.subarray(LENGTH_BYTES, end), isLast };
}

/** Joins pieces to results; results are not interleaved. */
export class ResultPieces {
  #pieces: Buffer[] = [];
  #length = 0;

  /** Returns the result with its last piece. The pieces of a result that is too large are dropped as they come. */
  add({ bytes, isLast }: { readonly bytes: Buffer; readonly isLast: boolean }): ResultBytes | undefined {
    this.#length += bytes.length;
    const isTooLarge = this.#length > MAX_WHOLE_BYTES;
    if (isTooLarge) this.#pieces = [];
    // Copied, because the buffer is reused.
    else this.#pieces.push(Buffer.from(bytes));
    if (!isLast) return undefined;
    const whole = isTooLarge ? null : Buffer.concat(this.#pieces);
    this.clear();
    return whole;
  }

  clear(): void {
    this.#pieces = [];
    this.#length = 0;
  }
}
