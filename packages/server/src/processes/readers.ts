import { PlatformError } from '@svc/contract';

/** Each reader has a connection to the sandbox, of which there are 256 for all uses. */
const MAX_PER_SANDBOX = 64;

/** Limits the readers of output per sandbox, so that they do not use up its connections. */
export class Readers {
  readonly #counts = new Map<string, number>();

  /** Yields from `open`. @throws PlatformError `rate_limited` when there are too many readers already */
  admit<T>(sandboxId: string, open: () => AsyncIterable<T>): AsyncIterable<T> {
    if ((this.#counts.get(sandboxId) ?? 0) >= MAX_PER_SANDBOX) {
      const message = `${MAX_PER_SANDBOX} readers follow output of this sandbox already; close some first`;
      throw new PlatformError('rate_limited', message);
    }
    return this.#counted(sandboxId, open);
  }

  async *#counted<T>(sandboxId: string, open: () => AsyncIterable<T>): AsyncGenerator<T> {
    this.#counts.set(sandboxId, (this.#counts.get(sandboxId) ?? 0) + 1);
    try {
      yield* open();
    } finally {
      const left = (this.#counts.get(sandboxId) ?? 1) - 1;
      if (left > 0) this.#counts.set(sandboxId, left);
      else this.#counts.delete(sandboxId);
    }
  }
}
