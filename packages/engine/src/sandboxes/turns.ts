/** Lets one change happen at a time, in the order they were asked for. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** When each of those who cannot wait for ever wants its turn. */
  readonly #wishes = new Set<{ readonly at: number }>();

  /** True while something runs or waits. */
  get busy(): boolean {
    return this.#waiting > 0;
  }

  /** When the turn that is under way should be over, by `performance.now`; Infinity when nobody is in a hurry. */
  get wantedAt(): number {
    return Math.min(...[...this.#wishes].map(({ at }) => at));
  }

  /** As `take`; whoever has the turn is asked to end it after `patienceMs`. */
  async takeSoon<T>(patienceMs: number, work: () => Promise<T>): Promise<T> {
    const wish = { at: performance.now() + patienceMs };
    this.#wishes.add(wish);
    return await this.take(async () => {
      this.#wishes.delete(wish);
      return await work();
    });
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    try {
      await before;
      return await work();
    } finally {
      this.#waiting -= 1;
      resolve();
    }
  }
}
