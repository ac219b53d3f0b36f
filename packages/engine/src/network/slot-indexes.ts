import { randomInt } from 'node:crypto';

/** Inclusive at both ends. */
export interface IndexRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Allocates numbers below `size`, each to one owner at a time. `take` cycles through those below `cycled` from a random start, so that a
 * number (and its address and id range) is reused as late as possible: connections of its last owner are forgotten by then.
 */
export class SlotIndexes {
  readonly #size: number;
  readonly #cycled: number;
  readonly #taken = new Set<number>();
  #next: number;

  constructor(size: number, cycled = size) {
    this.#size = size;
    this.#cycled = cycled;
    this.#next = randomInt(cycled);
  }

  /** Null when all are taken. */
  take(): number | null {
    for (let step = 0; step < this.#cycled; step++) {
      const index = (this.#next + step) % this.#cycled;
      if (this.#taken.has(index)) continue;
      this.#taken.add(index);
      this.#next = (index + 1) % this.#cycled;
      return index;
    }
    return null;
  }

  /** A number from `first` to `last`; null when all of them are taken. */
  takeWithin(range: IndexRange): number | null {
    const index = this.#freeWithin(range);
    if (index !== null) this.#taken.add(index);
    return index;
  }

  hasFree(range: IndexRange): boolean {
    return this.#freeWithin(range) !== null;
  }

  #freeWithin({ first, last }: IndexRange): number | null {
    const count = Math.min(last, this.#size - 1) - first + 1;
    if (count < 1) return null;
    const start = randomInt(count);
    for (let step = 0; step < count; step++) {
      const index = first + ((start + step) % count);
      if (!this.#taken.has(index)) return index;
    }
    return null;
  }

  reserve(index: number): void {
    this.#taken.add(index);
  }

  release(index: number): void {
    this.#taken.delete(index);
  }
}
