/** Ctrl-], which leaves the terminal of a sandbox. */
const DETACH_KEY = 0x1d;

interface Resizable {
  resize(size: { readonly rows: number; readonly cols: number }): Promise<void>;
}

export interface BorrowedTerminal extends Disposable {
  /** Removes the detach key, and all input after it, from the input of the process. */
  readonly filter: (typed: Buffer) => Buffer;
  /** Resolves when the detach key was typed. */
  readonly left: Promise<'left'>;
}

/** Puts the terminal into raw mode until disposed of: keys go to the process unchanged, Ctrl-C included, and so does the window size. */
export function borrowTerminal(child: Resizable): BorrowedTerminal {
  const { promise: left, resolve } = Promise.withResolvers<'left'>();
  const resize = () => void child.resize(windowSize()).catch(() => undefined);
  const restore = () => {
    process.stdout.off('resize', resize);
    process.off('exit', restore);
    process.stdin.setRawMode(false);
  };
  process.stdin.setRawMode(true);
  process.stdout.on('resize', resize);
  // Also restored after an unexpected error: a shell cannot be used in a raw terminal.
  process.on('exit', restore);
  return {
    left,
    filter: (typed) => {
      const end = typed.indexOf(DETACH_KEY);
      if (end === -1) return typed;
      resolve('left');
      return typed.subarray(0, end);
    },
    [Symbol.dispose]: restore,
  };
}

export function windowSize(): { readonly rows: number; readonly cols: number } {
  const { rows, columns } = process.stdout;
  return { rows: rows ?? 24, cols: columns ?? 80 };
}
