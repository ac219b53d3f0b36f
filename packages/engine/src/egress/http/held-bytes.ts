/** For all sandboxes together. */
const MAX_HELD_TOTAL_BYTES = 128 * 1024 * 1024;

let total = 0;

/**
 * Counts what is held of one sandbox because it must be whole before it can go on. Each may have half of what the others leave, so
 * one that sends what never ends does not keep them from sending.
 */
export class HeldBytes {
  #own = 0;

  /** Null when there is no room; given back when it is disposed of. */
  reserve(bytes: number): Disposable | null {
    if (this.#own + bytes > (MAX_HELD_TOTAL_BYTES - (total - this.#own)) / 2) return null;
    this.#own += bytes;
    total += bytes;
    return {
      [Symbol.dispose]: () => {
        this.#own -= bytes;
        total -= bytes;
      },
    };
  }
}
