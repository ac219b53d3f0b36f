/** A mutual exclusion lock: pieces of work run one at a time, in the order of the calls. A failure does not stop the next one. */
export class Mutex {
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** True while work runs or waits. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
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

  /** Resolves when no work runs or waits. */
  async whenIdle(): Promise<void> {
    while (this.isBusy) await this.#last;
  }
}

/** A mutex for each key: work on one key never overlaps, work on different keys may. */
export class KeyedMutex {
  readonly #mutexes = new Map<string, Mutex>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const mutex = this.#mutexes.get(key) ?? new Mutex();
    this.#mutexes.set(key, mutex);
    try {
      return await mutex.run(work);
    } finally {
      if (!mutex.isBusy) this.#mutexes.delete(key);
    }
  }

  /** Resolves when no work runs or waits. */
  async whenIdle(): Promise<void> {
    while (this.#mutexes.size > 0)
      await Promise.all([...this.#mutexes.values()].map((mutex) => mutex.whenIdle()));
  }
}
