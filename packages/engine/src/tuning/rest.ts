import type { Logger } from 'pino';
import type { Runtime } from '../runtime/runtime.ts';

/**
 * One that is awake takes as much of the processor in this time as to rest and to be woken take together, several times over; but who comes
 * back within it need not wait.
 */
const SOON_MS = 250;
/** Until an interpreter is ready that nobody has asked for yet; at rest it would take seconds for that. */
const LATER_MS = 1000;

export interface RestParts {
  readonly runtime: Pick<Runtime, 'rest' | 'wake'>;
  readonly handle: string;
  readonly logger: Logger;
  /** It outlived another engine, which may have left it either way. */
  readonly isFound: boolean;
}

/** Whether a sandbox rests. Nobody waits for either: what is said to it meanwhile arrives, and is slower until it is awake. */
export class Rest {
  readonly #parts: RestParts;
  /** Undefined: nobody knows. */
  #isResting: boolean | undefined;
  #soon: NodeJS.Timeout | undefined;
  #later: NodeJS.Timeout | undefined;

  constructor(parts: RestParts) {
    this.#parts = parts;
    this.#isResting = parts.isFound ? undefined : false;
  }

  /** Unless it is woken before, or somebody is seen in it. */
  restSoon(): void {
    this.#soon ??= setTimeout(() => this.rest(), SOON_MS).unref();
  }

  /** Something was started in it that waits for its caller, and may: unless it is woken before. */
  restLater(): void {
    this.#later ??= setTimeout(() => this.rest(), LATER_MS).unref();
  }

  rest(): void {
    this.close();
    if (this.#isResting === true) return;
    const { runtime, handle } = this.#parts;
    this.#become(true, runtime.rest(handle));
  }

  wake(): void {
    this.close();
    if (this.#isResting === false) return;
    const { runtime, handle } = this.#parts;
    this.#become(false, runtime.wake(handle));
  }

  /** It stays as it is: somebody is in it after all. */
  stay(): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
  }

  /** From now on it is let be. */
  close(): void {
    this.stay();
    clearTimeout(this.#later);
    this.#later = undefined;
  }

  #become(isResting: boolean, done: Promise<void>): void {
    this.#isResting = isResting;
    done.catch((error: unknown) => {
      const { handle, logger } = this.#parts;
      // Tried again by whoever comes next.
      this.#isResting = undefined;
      logger.warn({ error, handle }, 'a sandbox could not be put to rest, or woken');
    });
  }
}
