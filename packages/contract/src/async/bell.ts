import { onAbort } from './abort.ts';

/** Wakes everybody who waits for it. */
export class Bell {
  readonly #waiting = new Set<() => void>();

  /** Until it rings, or the signal aborts. */
  async next(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const stop = onAbort(signal, () => resolve());
    try {
      await promise;
    } finally {
      this.#waiting.delete(resolve);
      stop();
    }
  }

  ring(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
