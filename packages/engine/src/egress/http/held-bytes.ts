/** What is bounded for all sandboxes of this process together. */
interface Pool {
  readonly maxBytes: number;
  taken: number;
}

const MIB = 1024 * 1024;
/** Bodies that must be whole before they can go on; outside of the heap. */
export const BODIES: Pool = { maxBytes: 128 * MIB, taken: 0 };
/** Requests under way without their bodies; half of the heap. */
export const HEADS: Pool = { maxBytes: 64 * MIB, taken: 0 };
/** What sides of HTTP/2 may send ahead of what the other reads; outside of the heap. */
export const WINDOWS: Pool = { maxBytes: 128 * MIB, taken: 0 };

/**
 * Counts what is held of one sandbox. Each may have half of what the others leave, so one that sends what never ends does not keep
 * them from sending.
 */
export class HeldBytes {
  readonly #pool: Pool;
  #own = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Null when there is no room; given back when it is disposed of, once or more often. */
  reserve(bytes: number): Disposable | null {
    const pool = this.#pool;
    if (this.#own + bytes > (pool.maxBytes - (pool.taken - this.#own)) / 2) return null;
    this.#own += bytes;
    pool.taken += bytes;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#own -= bytes;
        pool.taken -= bytes;
      },
    };
  }
}
