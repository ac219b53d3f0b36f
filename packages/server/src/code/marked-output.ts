/** How much of a stream one call gets to see; what comes beyond is read and thrown away. */
export const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;
const CUT_MARK = '\n[output cut here: it exceeds 10 MiB]\n';
const FIRST_BUFFER_BYTES = 1024;

export interface Taken {
  readonly text: string;
  readonly isTruncated: boolean;
}

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
  /** A call has ended and nobody has taken its output yet. */
  #isOver = false;
  #marked = Promise.withResolvers<void>();

  /** Resolves when the mark was seen, or when no more will come. */
  expect(mark: Buffer): Promise<void> {
    this.#mark = mark;
    this.#marked = Promise.withResolvers<void>();
    return this.#marked.promise;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#mark === undefined) return (this.#isOver ? this.#next : this.#current).add(bytes);
    const data = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const position = data.indexOf(this.#mark);
    if (position === -1) return this.#keepUnmarked(data, this.#mark.length - 1);
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

  #keepUnmarked(data: Buffer, markRest: number): void {
    const end = Math.max(0, data.length - markRest);
    this.#current.add(data.subarray(0, end));
    this.#held = Buffer.from(data.subarray(end));
  }

  #finish(): void {
    this.#current.add(this.#held);
    this.#held = Buffer.alloc(0);
    this.#mark = undefined;
    this.#isOver = true;
    this.#marked.resolve();
  }
}

/** The first bytes of a stream, in one buffer that grows as needed. */
class Kept {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;
  isTruncated = false;

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
