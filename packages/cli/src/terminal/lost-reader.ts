const holders = new Set<() => void>();

/** When the reader of stdout goes away, as in `svc logs web | head`, the program ends without an error. Called once. */
export function endWithReader(): void {
  const end = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exit(1);
    if (holders.size === 0) process.exit(0);
    for (const onLost of holders) onLost();
  };
  process.stdout.on('error', end);
  process.stderr.on('error', end);
}

/** Until it is disposed of, the program does not end with its reader, so that its owner can clean up first. */
export class LostReader implements Disposable {
  /** Resolves with the code to exit with. */
  readonly lost: Promise<number>;
  readonly #onLost: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.lost = promise;
    this.#onLost = () => resolve(0);
    holders.add(this.#onLost);
  }

  [Symbol.dispose](): void {
    holders.delete(this.#onLost);
  }
}
