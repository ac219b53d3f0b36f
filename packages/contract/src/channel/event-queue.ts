/** Unread events that are held before the whole connection waits for their reader. */
const HELD_LIMIT_BYTES = 256 * 1024;
/** Overhead that is counted for every event, so that a flood of tiny ones is bounded too. */
const EVENT_OVERHEAD_BYTES = 64;

/** Events between the connection, which pushes, and one consumer, which iterates once. */
export class EventQueue<T> {
  readonly #contentBytes: (event: T) => number;
  readonly #events: T[] = [];
  #heldBytes = 0;
  #isOver = false;
  #error: Error | undefined;
  #wakeReader: (() => void) | undefined;
  #room: PromiseWithResolvers<void> | undefined;

  constructor(contentBytes: (event: T) => number) {
    this.#contentBytes = contentBytes;
  }

  /** A returned promise settles when the reader has room again. */
  push(events: readonly T[]): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    for (const event of events) {
      this.#events.push(event);
      this.#heldBytes += this.#costOf(event);
    }
    this.#wake();
    if (this.#heldBytes <= HELD_LIMIT_BYTES) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  /** Held events can still be read; then the iteration ends, or throws the error. Only the first call counts. */
  finish(error?: Error): undefined {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#wake();
    this.#makeRoom();
  }

  async *read(): AsyncGenerator<T, void> {
    try {
      for (;;) {
        const event = this.#events.shift();
        if (event !== undefined) {
          this.#heldBytes -= this.#costOf(event);
          if (this.#heldBytes <= HELD_LIMIT_BYTES / 2) this.#makeRoom();
          yield event;
        } else if (this.#error) {
          throw this.#error;
        } else if (this.#isOver) {
          return;
        } else {
          const waiting = Promise.withResolvers<void>();
          this.#wakeReader = waiting.resolve;
          await waiting.promise;
        }
      }
    } finally {
      this.#events.length = 0;
      this.finish();
    }
  }

  #costOf(event: T): number {
    return EVENT_OVERHEAD_BYTES + this.#contentBytes(event);
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
