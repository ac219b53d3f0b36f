interface Waiting {
  readonly command: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const MAX_BATCH_COMMANDS = 64;

/**
 * Batches commands that arrive while others run into one transaction, because most of the cost is per transaction. When a batch fails, each
 * command is retried alone, so that only the faulty one fails.
 */
export class Batches {
  readonly #transact: (commands: readonly string[]) => Promise<Error | null>;
  readonly #waiting: Waiting[] = [];
  #working: Promise<void> | null = null;

  /** `transact` runs all of them or none, and never rejects. */
  constructor(transact: (commands: readonly string[]) => Promise<Error | null>) {
    this.#transact = transact;
  }

  run(command: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ command, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** Resolves when the commands given so far have run. */
  async settled(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    // Collects all commands of this turn of the event loop.
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
