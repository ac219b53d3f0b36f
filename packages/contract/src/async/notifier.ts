import { onAbort } from './abort.ts';

/** A condition that callers wait for; a notification wakes all of them. */
export class Notifier {
  readonly #waiting = new Set<() => void>();

  /** Resolves at the next notification, or when the signal aborts. */
  async wait(signal: AbortSignal): Promise<void> {
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

  notify(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
