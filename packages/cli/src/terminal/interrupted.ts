import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A person, or the system, ended the command; exit code 128 + the number of the signal, as a shell shows it. */
export class InterruptedError extends Error {
  readonly exitCode: number;

  constructor(name: NodeJS.Signals) {
    super(`interrupted by ${name}`);
    this.exitCode = 128 + constants.signals[name];
  }
}

/** While it is in force, a signal aborts what is under way instead of this program, so that it can clean up. */
export class Interrupted implements Disposable {
  readonly #controller = new AbortController();

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#interrupt);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Null: nobody has interrupted. */
  get reason(): InterruptedError | null {
    return this.signal.aborted ? (this.signal.reason as InterruptedError) : null;
  }

  [Symbol.dispose](): void {
    for (const name of SIGNALS) process.off(name, this.#interrupt);
  }

  readonly #interrupt = (name: NodeJS.Signals): void => {
    // The second signal: do not wait for the cleaning up.
    if (this.signal.aborted) process.exit(128 + constants.signals[name]);
    this.#controller.abort(new InterruptedError(name));
  };
}
