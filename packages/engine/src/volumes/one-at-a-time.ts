/** Runs tasks one after the other, in the order they were given, whatever their outcome. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Nothing runs and nothing waits. */
  get isIdle(): boolean {
    return this.#waiting === 0;
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    try {
      return await result;
    } finally {
      this.#waiting -= 1;
    }
  }
}
