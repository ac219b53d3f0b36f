import type { EventEmitter } from 'node:events';

/**
 * Somebody waits for something to be said of one sandbox; listens from the beginning. Without abort signals of its own, for each of
 * those that ends makes an error with the way to it, in a tenth of a millisecond.
 */
export class NextChange implements Disposable {
  readonly #changes: EventEmitter;
  readonly #sandboxId: string;
  readonly #told = Promise.withResolvers<void>();

  constructor(changes: EventEmitter, sandboxId: string) {
    this.#changes = changes;
    this.#sandboxId = sandboxId;
    changes.once(sandboxId, this.#told.resolve);
  }

  /** Ends when it was said, the time is over, or the caller is gone. */
  async within(milliseconds: number, signal: AbortSignal): Promise<void> {
    const end = () => this.#told.resolve();
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    await this.#told.promise;
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }

  /** Ends a wait that is still going. */
  [Symbol.dispose](): void {
    this.#changes.off(this.#sandboxId, this.#told.resolve);
    this.#told.resolve();
  }
}
