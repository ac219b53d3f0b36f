import type { Logger } from 'pino';
import type { Runtime } from '../runtime/runtime.ts';

/**
 * The delay before the timers of an unused sandbox are slowed down. Calls within it find the sandbox at full speed; without slowing, it uses
 * several times more CPU in this time than slowing it down and waking it take together.
 */
const SOON_MS = 250;
/** The same for an interpreter that is started ahead: with slow timers it would need seconds to become ready. */
const LATER_MS = 1000;

export interface RestParts {
  readonly runtime: Pick<Runtime, 'rest' | 'wake'>;
  readonly handle: string;
  readonly logger: Logger;
  /** It was started by an earlier engine, so its state is unknown. */
  readonly isFound: boolean;
}

/**
 * Slows down the timers of a gVisor kernel while its sandbox is unused ("rest"), and wakes it on use. Both run in the background: messages
 * that arrive meanwhile are delivered, only later.
 */
export class Rest {
  readonly #parts: RestParts;
  /** Undefined when unknown. */
  #isResting: boolean | undefined;
  #soon: NodeJS.Timeout | undefined;
  #later: NodeJS.Timeout | undefined;

  constructor(parts: RestParts) {
    this.#parts = parts;
    this.#isResting = parts.isFound ? undefined : false;
  }

  /** Rests after a short delay, unless `wake`, `stay` or `close` come first. */
  restSoon(): void {
    this.#soon ??= setTimeout(() => this.rest(), SOON_MS).unref();
  }

  /** Rests after a longer delay, for a process that was started ahead, unless `wake` or `close` come first. */
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

  /** Cancels `restSoon`, because the sandbox is in use. */
  stay(): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
  }

  /** Cancels both timers. */
  close(): void {
    this.stay();
    clearTimeout(this.#later);
    this.#later = undefined;
  }

  #become(isResting: boolean, done: Promise<void>): void {
    this.#isResting = isResting;
    done.catch((error: unknown) => {
      const { handle, logger } = this.#parts;
      // The next call tries again.
      this.#isResting = undefined;
      logger.warn({ error, handle }, 'a sandbox could not be put to rest, or woken');
    });
  }
}
