/** How much of a stream one call gets to see; what comes beyond is read and thrown away. */
export const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;
const CUT_MARK = '\n[output cut here: it exceeds 10 MiB]\n';
const FIRST_BUFFER_BYTES = 1024;

export interface Taken {
  readonly text: string;
  readonly isTruncated: boolean;
}

export type Listen = (data: Buffer) => void;

/**
 * One output stream of an interpreter, cut into calls. Each call ends with a mark of its own that the interpreter writes when
 * the code of the user is over; what comes after it, from threads and children that go on, belongs to the next call.
 */
export class MarkedOutput {
  #current = new Kept();
  #next = new Kept();
  /** Bytes that may be the beginning of the mark. */
  #held: Buffer = Buffer.alloc(0);
  #mark: Buffer | undefined;
  #listen: Listen | undefined;
  /** A call has ended and nobody has taken its output yet. */
  #isOver = false;
  #marked = Promise.withResolvers<void>();

  /**
   * Resolves when the mark was seen, or when no more will come. `listen` is given all that belongs to the call, without a
   * limit, as it comes; what it is given is its own only until it returns.
   */
  expect(mark: Buffer, listen?: Listen): Promise<void> {
    this.#mark = mark;
    this.#listen = listen;
    if (this.#current.bytes.length > 0) listen?.(this.#current.bytes);
    this.#marked = Promise.withResolvers<void>();
    return this.#marked.promise;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#mark === undefined) return (this.#isOver ? this.#next : this.#current).add(bytes);
    const data = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const position = data.indexOf(this.#mark);
    if (position === -1) return this.#keepUnmarked(data, this.#mark);
    this.#held = data.subarray(0, position);
    this.#next.add(data.subarray(position + this.#mark.length));
    this.#finish();
  }

  end(): void {
    this.#finish();
  }

  /** What the call printed that is over, and what was printed between it and the one before. */
  take(): Taken {
    this.#finish();
    this.#isOver = false;
    const { text, isTruncated } = this.#current;
    this.#current = this.#next;
    this.#next = new Kept();
    return { text: isTruncated ? text + CUT_MARK : text, isTruncated };
  }

  #keepUnmarked(data: Buffer, mark: Buffer): void {
    const end = data.length - lengthOfBegun(data, mark);
    this.#keep(data.subarray(0, end));
    this.#held = Buffer.from(data.subarray(end));
  }

  #keep(data: Buffer): void {
    if (data.length === 0) return;
    this.#current.add(data);
    this.#listen?.(data);
  }

  #finish(): void {
    this.#keep(this.#held);
    this.#held = Buffer.alloc(0);
    this.#mark = undefined;
    this.#listen = undefined;
    this.#isOver = true;
    this.#marked.resolve();
  }
}

/** How many of the last bytes are the beginning of the mark. */
function lengthOfBegun(data: Buffer, mark: Buffer): number {
  for (let length = Math.min(data.length, mark.length - 1); length > 0; length--) {
    if (data.subarray(data.length - length).equals(mark.subarray(0, length))) return length;
  }
  return 0;
}

/** The first bytes of a stream, in one buffer that grows as needed. */
class Kept {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;
  isTruncated = false;

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Bytes that are not UTF-8 become U+FFFD. */
  get text(): string {
    return this.#buffer.toString('utf8', 0, this.#length);
  }

  add(data: Buffer): void {
    const kept = data.subarray(0, MAX_OUTPUT_BYTES - this.#length);
    if (kept.length < data.length) this.isTruncated = true;
    const length = this.#length + kept.length;
    if (length > this.#buffer.length) this.#grow(length);
    kept.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  #grow(bytes: number): void {
    const size = Math.min(Math.max(bytes, this.#buffer.length * 2, FIRST_BUFFER_BYTES), MAX_OUTPUT_BYTES);
    const grown = Buffer.alloc(size);
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
