import { randomInt } from 'node:crypto';

/**
 * Hands out numbers below `size`, each to one owner at a time. Goes round from a random start, so that a number (and with
 * it an address and a range of ids) comes back as late as possible: connections of its last owner are forgotten by then.
 */
export class SlotIndexes {
  readonly #size: number;
  readonly #taken = new Set<number>();
  #next: number;

  constructor(size: number) {
    this.#size = size;
    this.#next = randomInt(size);
  }

  /** null when all are taken. */
  take(): number | null {
    if (this.#taken.size >= this.#size) return null;
    while (this.#taken.has(this.#next)) this.#next = (this.#next + 1) % this.#size;
    const index = this.#next;
    this.#taken.add(index);
    this.#next = (index + 1) % this.#size;
    return index;
  }

  reserve(index: number): void {
    this.#taken.add(index);
  }

  release(index: number): void {
    this.#taken.delete(index);
  }
}
