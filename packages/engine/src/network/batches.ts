interface Waiting {
  readonly command: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const MAX_BATCH_COMMANDS = 64;

/**
 * Commands that arrive while others run go together in one transaction, since most of what one costs it costs once; when it fails, each
 * is tried alone, so that only the culprit fails.
 */
export class Batches {
  readonly #transact: (commands: readonly string[]) => Promise<Error | null>;
  readonly #waiting: Waiting[] = [];
  #working: Promise<void> | null = null;

  /** `transact` does all of them or none, and never rejects. */
  constructor(transact: (commands: readonly string[]) => Promise<Error | null>) {
    this.#transact = transact;
  }

  run(command: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ command, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** Resolves when the commands given so far are done. */
  async settled(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    // Lets everything that is asked for in this turn of the event loop go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH_COMMANDS);
      const error = await this.#transact(batch.map(({ command }) => command));
      if (error === null) for (const { resolve } of batch) resolve();
      else if (batch.length === 1) batch[0]?.reject(error);
      else
        for (const { command, resolve, reject } of batch) {
          const own = await this.#transact([command]);
          if (own === null) resolve();
          else reject(own);
        }
    }
    this.#working = null;
  }
}
