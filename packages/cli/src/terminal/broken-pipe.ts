const guards = new Set<() => void>();

/** Ends the program without an error when stdout is a broken pipe, as in `svc logs web | head`. Called once. */
export function exitOnBrokenPipe(): void {
  const end = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exit(1);
    if (guards.size === 0) process.exit(0);
    for (const onBroken of guards) onBroken();
  };
  process.stdout.on('error', end);
  process.stderr.on('error', end);
}

/** While one exists, a broken pipe does not end the program, so that its owner can clean up first. */
export class BrokenPipeGuard implements Disposable {
  /** Resolves with the code to exit with. */
  readonly broken: Promise<number>;
  readonly #onBroken: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.broken = promise;
    this.#onBroken = () => resolve(0);
    guards.add(this.#onBroken);
  }

  [Symbol.dispose](): void {
    guards.delete(this.#onBroken);
  }
}
