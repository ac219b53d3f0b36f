/** Lets one piece of work happen at a time, in the order they were asked for, whatever their outcome. */
export class Turns {
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** True while something runs or waits. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const before = this.#last;
    const mine = Promise.withResolvers<void>();
    this.#last = mine.promise;
    try {
      await before;
      return await work();
    } finally {
      this.#waiting -= 1;
      mine.resolve();
    }
  }

  /** Resolves when all work that was asked for is over. */
  async whenIdle(): Promise<void> {
    while (this.isBusy) await this.#last;
  }
}

/** Work on one thing never overlaps; work on different things may. */
export class KeyedTurns {
  readonly #turns = new Map<string, Turns>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turns = this.#turns.get(key) ?? new Turns();
    this.#turns.set(key, turns);
    try {
      return await turns.take(work);
    } finally {
      if (!turns.isBusy) this.#turns.delete(key);
    }
  }

  /** Resolves when all work that was asked for is over. */
  async whenIdle(): Promise<void> {
    while (this.#turns.size > 0)
      await Promise.all([...this.#turns.values()].map((turns) => turns.whenIdle()));
  }
}
