import { abortable } from './abort.ts';

interface Waiting {
  readonly scope: string | null;
  readonly granted: PromiseWithResolvers<void>;
}

/**
 * A counting semaphore that scopes share. A scope may hold as many permits as are free: one scope gets half of them, two scopes a third
 * each, so that the next scope finds one; further calls wait. A released permit goes to the waiting scope that holds the fewest, and
 * among equals to the call that has waited longest. The scope of the operator is null: only the capacity limits it.
 */
export class FairSemaphore {
  readonly #capacity: number;
  readonly #counts = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  #inUse = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Dispose of the permit at the end. `onWait` is called when there is none yet. */
  async acquire(scope: string | null, onWait: () => void, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#mayAcquire(scope)) return this.#grant(scope);
    const mine: Waiting = { scope, granted: Promise.withResolvers() };
    this.#waiting.push(mine);
    onWait();
    try {
      await abortable(mine.granted.promise, signal);
    } catch (error) {
      const index = this.#waiting.indexOf(mine);
      if (index >= 0) this.#waiting.splice(index, 1);
      // It was granted and aborted in the same moment.
      else this.#release(scope);
      throw error;
    }
    return this.#permit(scope);
  }

  #countOf(scope: string | null): number {
    return scope === null ? 0 : (this.#counts.get(scope) ?? 0);
  }

  #mayAcquire(scope: string | null): boolean {
    const free = this.#capacity - this.#inUse;
    const own = this.#countOf(scope);
    return free > 0 && (own === 0 || own < free);
  }

  #grant(scope: string | null): Disposable {
    this.#count(scope, 1);
    return this.#permit(scope);
  }

  #permit(scope: string | null): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#release(scope);
        isHeld = false;
      },
    };
  }

  #release(scope: string | null): void {
    this.#count(scope, -1);
    for (;;) {
      const [next] = this.#waiting
        .filter((each) => this.#mayAcquire(each.scope))
        // Stable: among equals the first to wait.
        .toSorted((a, b) => this.#countOf(a.scope) - this.#countOf(b.scope));
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#count(next.scope, 1);
      next.granted.resolve();
    }
  }

  #count(scope: string | null, change: 1 | -1): void {
    this.#inUse += change;
    if (scope === null) return;
    const own = this.#countOf(scope) + change;
    if (own === 0) this.#counts.delete(scope);
    else this.#counts.set(scope, own);
  }
}
