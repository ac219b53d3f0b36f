import { Mutex } from '@svc/contract/async';

/** A mutex for the changes of one sandbox, first come first served. A caller can limit how long the change before it may take. */
export class ChangeMutex {
  readonly #mutex = new Mutex();
  /** Until when each hurried caller is willing to wait. */
  readonly #deadlines = new Set<{ readonly at: number }>();

  /** True while a change runs or waits. */
  get busy(): boolean {
    return this.#mutex.isBusy;
  }

  /** When the running change should be over, by `performance.now`; Infinity when no caller is in a hurry. */
  get deadline(): number {
    return Math.min(...[...this.#deadlines].map(({ at }) => at));
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    return await this.#mutex.run(work);
  }

  /** As `run`; the change that runs meanwhile should end within `timeoutMs`. */
  async runSoon<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
    const deadline = { at: performance.now() + timeoutMs };
    this.#deadlines.add(deadline);
    return await this.run(async () => {
      this.#deadlines.delete(deadline);
      return await work();
    });
  }
}
