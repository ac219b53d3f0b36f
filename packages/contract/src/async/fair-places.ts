import { abortable } from './abort.ts';

interface Waiting {
  readonly scope: string | null;
  readonly let: PromiseWithResolvers<void>;
}

/**
 * How much of some work is under way. A scope may have as many places as are free, so that one alone gets half of them, two a
 * third each, and whoever comes next finds one; what is over that waits. A free place goes to whoever has the fewest, of those to
 * whoever has waited longest. The operator, who names no scope, is held to the whole alone.
 */
export class FairPlaces {
  readonly #capacity: number;
  readonly #counts = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Dispose of what it returns at the end. `onWait`: when there is no place yet. */
  async take(scope: string | null, onWait: () => void, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#mayEnter(scope)) return this.#enter(scope);
    const mine: Waiting = { scope, let: Promise.withResolvers() };
    this.#waiting.push(mine);
    onWait();
    try {
      await abortable(mine.let.promise, signal);
    } catch (error) {
      const place = this.#waiting.indexOf(mine);
      if (place >= 0) this.#waiting.splice(place, 1);
      // It was let in and called off in the same moment.
      else this.#leave(scope);
      throw error;
    }
    return this.#disposable(scope);
  }

  #countOf(scope: string | null): number {
    return scope === null ? 0 : (this.#counts.get(scope) ?? 0);
  }

  #mayEnter(scope: string | null): boolean {
    const free = this.#capacity - this.#taken;
    const own = this.#countOf(scope);
    return free > 0 && (own === 0 || own < free);
  }

  #enter(scope: string | null): Disposable {
    this.#count(scope, 1);
    return this.#disposable(scope);
  }

  #disposable(scope: string | null): Disposable {
    let isIn = true;
    return {
      [Symbol.dispose]: () => {
        if (isIn) this.#leave(scope);
        isIn = false;
      },
    };
  }

  #leave(scope: string | null): void {
    this.#count(scope, -1);
    for (;;) {
      const [next] = this.#waiting
        .filter((each) => this.#mayEnter(each.scope))
        // Stable: of those with as many, the first to come.
        .toSorted((a, b) => this.#countOf(a.scope) - this.#countOf(b.scope));
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#count(next.scope, 1);
      next.let.resolve();
    }
  }

  #count(scope: string | null, change: 1 | -1): void {
    this.#taken += change;
    if (scope === null) return;
    const own = this.#countOf(scope) + change;
    if (own === 0) this.#counts.delete(scope);
    else this.#counts.set(scope, own);
  }
}
