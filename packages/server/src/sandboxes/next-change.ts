import type { EventEmitter } from 'node:events';

/**
 * Waits for the next change of one sandbox; listens from its construction on. It has no abort signals of its own, because aborting one
 * creates an error with a stack trace, which takes a tenth of a millisecond.
 */
export class NextChange implements Disposable {
  readonly #changes: EventEmitter;
  readonly #sandboxId: string;
  readonly #changed = Promise.withResolvers<void>();

  constructor(changes: EventEmitter, sandboxId: string) {
    this.#changes = changes;
    this.#sandboxId = sandboxId;
    changes.once(sandboxId, this.#changed.resolve);
  }

  /** Resolves at a change, after the time, or when the caller disconnects. */
  async within(milliseconds: number, signal: AbortSignal): Promise<void> {
    const end = () => this.#changed.resolve();
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    await this.#changed.promise;
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }

  /** Ends a wait in progress. */
  [Symbol.dispose](): void {
    this.#changes.off(this.#sandboxId, this.#changed.resolve);
    this.#changed.resolve();
  }
}
