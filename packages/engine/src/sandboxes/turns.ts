/** Lets one change happen at a time, in the order they were asked for. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** True while something runs or waits. */
  get busy(): boolean {
    return this.#waiting > 0;
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
