/** Enough for what most connections ever receive: the answers of a short process. */
const FIRST_BYTES = 8 * 1024;
/** Room for a whole frame of output, for a connection that has filled a smaller one. */
const BUFFER_BYTES = 256 * 1024;
/** One is with the reader while the other is filled. */
const BUFFERS = 2;

/**
 * The received chunks of a connection, read into the same few buffers: a runtime otherwise allocates a new one for every
 * 64 KiB, and collecting those takes most of the time of bulk traffic. A chunk is valid until the next one is asked for.
 * The buffers are filled and released in the same order, so while fewer chunks than buffers are in use, the next buffer is
 * free. They are small until one was filled: V8 counts also untouched memory as garbage, and 32 MiB of it, 64 short
 * connections, trigger a full collection. For one reader.
 */
export class PooledChunks {
  readonly #resume: () => void;
  readonly #allocate: (bytes: number) => Uint8Array;
  readonly #buffers: Uint8Array[] = [];
  readonly #chunks: Uint8Array[] = [];
  #bufferBytes = FIRST_BYTES;
  #inUse = 0;
  #isLent = false;
  #end: { readonly error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  /**
   * `resume` is called when there is room again after `take` returned false. `allocate` returns a buffer that is not zeroed:
   * zeroing would touch all of its memory, half a MiB for every busy connection.
   */
  constructor(resume: () => void, allocate: (bytes: number) => Uint8Array) {
    this.#resume = resume;
    this.#allocate = allocate;
  }

  /** Where the next read goes; asked for once at first, and then after every read. */
  nextBuffer(): Uint8Array {
    const free = this.#buffers.length === BUFFERS ? this.#buffers.shift() : undefined;
    const buffer = free?.byteLength === this.#bufferBytes ? free : this.#allocate(this.#bufferBytes);
    this.#buffers.push(buffer);
    return buffer;
  }

  /** What was read. False when nothing more may be read for now, so that the peer waits. */
  take(chunk: Uint8Array): boolean {
    // Not a Node Buffer, whose `slice` is no copy.
    this.#chunks.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this.#inUse += 1;
    if (chunk.byteLength >= FIRST_BYTES) this.#bufferBytes = BUFFER_BYTES;
    this.#wake?.();
    return this.#inUse < BUFFERS;
  }

  /** Nothing more will come. The first time counts. */
  finish(error?: Error): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** Undefined at the end. @throws what it was finished with */
  async read(): Promise<Uint8Array | undefined> {
    this.#giveBack();
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#isLent = true;
        return chunk;
      }
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return undefined;
      const waiting = Promise.withResolvers<void>();
      this.#wake = waiting.resolve;
      await waiting.promise;
    }
  }

  #giveBack(): void {
    if (!this.#isLent) return;
    this.#isLent = false;
    this.#inUse -= 1;
    if (this.#inUse === BUFFERS - 1) this.#resume();
  }
}
