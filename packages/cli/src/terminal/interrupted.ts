import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A signal ended the command; exit code 128 + its number, as in a shell. */
export class InterruptedError extends Error {
  readonly exitCode: number;

  constructor(name: NodeJS.Signals) {
    super(`interrupted by ${name}`);
    this.exitCode = 128 + constants.signals[name];
  }
}

/** Until it is disposed of, a signal aborts the current work instead of ending the program, so that it can clean up. */
export class Interrupted implements Disposable {
  readonly #controller = new AbortController();

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#interrupt);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Null: not interrupted. */
  get reason(): InterruptedError | null {
    return this.signal.aborted ? (this.signal.reason as InterruptedError) : null;
  }

  [Symbol.dispose](): void {
    for (const name of SIGNALS) process.off(name, this.#interrupt);
  }

  readonly #interrupt = (name: NodeJS.Signals): void => {
    // A second signal ends the program without cleanup.
    if (this.signal.aborted) process.exit(128 + constants.signals[name]);
    this.#controller.abort(new InterruptedError(name));
  };
}
