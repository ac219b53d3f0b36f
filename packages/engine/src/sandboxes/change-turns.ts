import { Mutex } from '@svc/contract/async';

/** Lets one change of a sandbox happen at a time, in the order they were asked for; some are in a hurry. */
export class ChangeTurns {
  readonly #mutex = new Mutex();
  /** When each of those who cannot wait for ever wants its turn. */
  readonly #wishes = new Set<{ readonly at: number }>();

  /** True while something runs or waits. */
  get busy(): boolean {
    return this.#mutex.isBusy;
  }

  /** When the turn that is under way should be over, by `performance.now`; Infinity when nobody is in a hurry. */
  get wantedAt(): number {
    return Math.min(...[...this.#wishes].map(({ at }) => at));
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    return await this.#mutex.run(work);
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
}
