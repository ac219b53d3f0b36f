/** For all connections together. */
const MAX_HELD_TOTAL_BYTES = 128 * 1024 * 1024;

let total = 0;

/** Counts what is held in memory because it must be whole before it can go on. */
export const heldBytes = {
  /** Null when there is no room; given back when it is disposed of. */
  reserve(bytes: number): Disposable | null {
    if (total + bytes > MAX_HELD_TOTAL_BYTES) return null;
    total += bytes;
    return {
      [Symbol.dispose]: () => {
        total -= bytes;
      },
    };
  },
};
