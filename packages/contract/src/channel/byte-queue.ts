/** Overhead that is counted for every held chunk, so that a flood of tiny chunks is bounded too. */
const CHUNK_OVERHEAD_BYTES = 64;

/** Bytes of a process or a connection, in the order they were sent. Read it once. */
export interface ByteStream extends AsyncIterable<Uint8Array> {
  /** Drops current and future data, so that an unread stream does not stall the connection. */
  discard(): void;
}

/**
 * A bounded queue between the connection, which pushes, and one consumer, which iterates.
 * Leaving the iteration early discards the rest.
 */
export class ByteQueue implements ByteStream {
  readonly #limitBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #heldBytes = 0;
  #state: 'open' | 'ended' | 'discarded' = 'open';
  #error: Error | undefined;
  #wakeReader: (() => void) | undefined;
  #room: PromiseWithResolvers<void> | undefined;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Returns a promise when the queue is full: the producer waits for it before it pushes more. */
  push(data: Uint8Array): Promise<void> | undefined {
    if (this.#state !== 'open' || data.length === 0) return undefined;
    this.#chunks.push(this.#wakeReader ? data : detach(data));
    this.#heldBytes += data.length + CHUNK_OVERHEAD_BYTES;
    this.#wake();
    if (this.#heldBytes <= this.#limitBytes) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  /** What was pushed can still be read; then the iteration ends, or throws the error. */
  end(error?: Error): void {
    if (this.#state !== 'open') return;
    this.#state = 'ended';
    this.#error = error;
    this.#wake();
    this.#makeRoom();
  }

  discard(): void {
    this.#state = 'discarded';
    this.#error = undefined;
    this.#chunks.length = 0;
    this.#heldBytes = 0;
    this.#wake();
    this.#makeRoom();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#heldBytes -= chunk.length + CHUNK_OVERHEAD_BYTES;
          if (this.#heldBytes <= this.#limitBytes / 2) this.#makeRoom();
          yield chunk;
        } else if (this.#state === 'open') {
          const waiting = Promise.withResolvers<void>();
          this.#wakeReader = waiting.resolve;
          await waiting.promise;
        } else if (this.#error) {
          throw this.#error;
        } else {
          return;
        }
      }
    } finally {
      this.discard();
    }
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }
}

/** A small view would keep the whole chunk it was cut from alive for as long as it is held. */
export function detach(data: Uint8Array): Uint8Array {
  return data.length * 2 < data.buffer.byteLength ? new Uint8Array(data) : data;
}
