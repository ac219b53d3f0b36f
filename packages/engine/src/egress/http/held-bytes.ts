/** Memory limits for all sandboxes of this process together. */
interface Pool {
  readonly maxBytes: number;
  taken: number;
}

const MIB = 1024 * 1024;
/** Bodies that must be complete before they are sent; outside of the heap. */
export const BODIES: Pool = { maxBytes: 128 * MIB, taken: 0 };
/** Requests in progress without their bodies; half of the heap. */
export const HEADS: Pool = { maxBytes: 64 * MIB, taken: 0 };
/** Flow-control windows of HTTP/2; outside of the heap. */
export const WINDOWS: Pool = { maxBytes: 128 * MIB, taken: 0 };

/**
 * Counts the memory held for one sandbox. Each sandbox may hold half of what the other sandboxes leave, so one that sends endless data
 * does not block the others.
 */
export class HeldBytes {
  readonly #pool: Pool;
  #own = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Null when there is no room. Disposing releases it; a second time has no effect. */
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
