import { FrameError } from '@svc/contract/frames';

const UNSIGNED = 0;
const NEGATIVE = 1;
const BYTES = 2;
const TEXT = 3;
const ARRAY = 4;
const MAP = 5;
const TAG = 6;
const SIMPLE = 7;
const TRUE = 0xf5;
/** Ends an item of indefinite length. */
const BREAK = 0xff;
const INDEFINITE = 31;
const MAX_DEPTH = 16;

/** Iterates over the items of an array or the pairs of a map: `next` says whether there is another one to read. */
export interface CborItems {
  next(): boolean;
}

/** Reads one CBOR item from front to back without building its value. Every method throws FrameError. */
export class CborReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  isText(): boolean {
    return this.#peek() >> 5 === TEXT;
  }

  /** Consumes an item of any type; says whether it was `true`. */
  isTrue(): boolean {
    const isTrue = this.#peek() === TRUE;
    this.skip();
    return isTrue;
  }

  /** The UTF-8 bytes of a text of definite length. */
  text(): Uint8Array {
    return this.#string(TEXT);
  }

  bytes(): Uint8Array {
    return this.#string(BYTES);
  }

  array(): CborItems {
    return this.#items(ARRAY);
  }

  map(): CborItems {
    return this.#items(MAP);
  }

  skip(depth = 0): void {
    if (depth > MAX_DEPTH) throw malformed();
    const major = this.#peek() >> 5;
    if (major === ARRAY || major === MAP) {
      for (const items = this.#items(major); items.next();) {
        this.skip(depth + 1);
        if (major === MAP) this.skip(depth + 1);
      }
    } else if (major === BYTES || major === TEXT) this.#skipString(major);
    else if (major === TAG) {
      this.#head();
      this.skip(depth + 1);
    } else if (this.#peek() === BREAK) throw malformed();
    else this.#head();
  }

  /** Throws unless all bytes were consumed. */
  end(): void {
    if (this.#position !== this.#bytes.length) throw malformed();
  }

  /** Skips a string of definite length, or a sequence of chunks of the same type. */
  #skipString(major: number): void {
    if ((this.#peek() & 0x1f) !== INDEFINITE) return void this.#string(major);
    this.#position += 1;
    while (this.#peek() !== BREAK) this.#string(major);
    this.#position += 1;
  }

  /** Refuses strings of indefinite length: they are legal CBOR, but no client sends them in these places. */
  #string(major: number): Uint8Array {
    const head = this.#head();
    if (head.major !== major || head.value === undefined) throw malformed();
    const start = this.#position;
    this.#position += head.value;
    if (this.#position > this.#bytes.length) throw malformed();
    return this.#bytes.subarray(start, this.#position);
  }

  #items(major: number): CborItems {
    const head = this.#head();
    if (head.major !== major) throw malformed();
    let left = head.value;
    return {
      next: () => {
        if (left !== undefined) return left-- > 0;
        if (this.#peek() !== BREAK) return true;
        this.#position += 1;
        return false;
      },
    };
  }

  #peek(): number {
    const byte = this.#bytes[this.#position];
    if (byte === undefined) throw malformed();
    return byte;
  }

  /** `value` is undefined for an indefinite length. */
  #head(): { readonly major: number; readonly value: number | undefined } {
    const first = this.#peek();
    this.#position += 1;
    const major = first >> 5;
    const info = first & 0x1f;
    if (info < 24) return { major, value: info };
    if (
      info === INDEFINITE &&
      major !== UNSIGNED &&
      major !== NEGATIVE &&
      major !== TAG &&
      major !== SIMPLE
    ) {
      return { major, value: undefined };
    }
    if (info > 27) throw malformed();
    const size = 1 << (info - 24);
    if (this.#position + size > this.#bytes.length) throw malformed();
    const value = this.#readUint(size);
    this.#position += size;
    return { major, value };
  }

  #readUint(size: number): number {
    if (size === 1) return this.#view.getUint8(this.#position);
    if (size === 2) return this.#view.getUint16(this.#position);
    if (size === 4) return this.#view.getUint32(this.#position);
    // Precise up to 2^53, which is more than any length here.
    return Number(this.#view.getBigUint64(this.#position));
  }
}

function malformed(): FrameError {
  return new FrameError('the frame body is not CBOR that can be read here');
}
