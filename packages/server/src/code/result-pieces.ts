import { MAX_FORM_BYTES } from '@svc/contract';

const LENGTH_BYTES = 4;
const MORE = 0x80_00_00_00;
/** With its mark and its length a piece is written to a pipe at once. */
const MAX_PIECE_BYTES = 4096;
/** The largest form, and room for the others of the same result and for what is said about them. */
const MAX_WHOLE_BYTES = 2 * MAX_FORM_BYTES;

/** What a driver says of one value that code showed; null when it is more than any driver says. */
export type ResultBytes = Buffer | null;

/** `none`: no driver wrote it. */
export type Piece =
  | { readonly end: number; readonly bytes: Buffer; readonly isLast: boolean }
  | 'unfinished'
  | 'none';

/** The piece that a mark stood before. No driver writes the last mark inside of one; code that does ends its unit, as ever. */
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

/** Joins the pieces of results, which come one result after the other. */
export class ResultPieces {
  #pieces: Buffer[] = [];
  #length = 0;

  /** The whole, with its last piece; what is too much for memory is let go of as it comes. */
  add({ bytes, isLast }: { readonly bytes: Buffer; readonly isLast: boolean }): ResultBytes | undefined {
    this.#length += bytes.length;
    const isTooLarge = this.#length > MAX_WHOLE_BYTES;
    if (isTooLarge) this.#pieces = [];
    // The data they come in is reused.
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
