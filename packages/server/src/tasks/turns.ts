/** Work on one thing never overlaps; work on different things may. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const mine = Promise.withResolvers<void>();
    this.#last.set(key, mine.promise);
    try {
      await before;
      return await work();
    } finally {
      mine.resolve();
      if (this.#last.get(key) === mine.promise) this.#last.delete(key);
    }
  }

  /** Resolves when all work that was begun is over. */
  async whenIdle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
