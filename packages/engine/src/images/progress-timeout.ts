import { refused } from './image-failures.ts';

/**
 * Ends work on hostile bytes in which nothing moves any more: a program that reads them may have been taken over by them. `signal`
 * aborts with `invalid_image` after so long without a `moved`. What the work waits for outside of these programs does not count.
 */
export class ProgressTimeout implements Disposable {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();
  readonly #maxIdleMs: number;
  #timer: NodeJS.Timeout | null = null;

  constructor(maxIdleMs: number) {
    this.signal = this.#stop.signal;
    this.#maxIdleMs = maxIdleMs;
    this.resume();
  }

  note(): void {
    if (this.#timer !== null) this.resume();
  }

  pause(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Counts from now on; `times`: how much longer than usual the next thing may take. */
  resume(times = 1): void {
    this.pause();
    const idleMs = this.#maxIdleMs * times;
    const failure = () => refused(`what reads it stood still for ${idleMs / 1000} seconds`);
    this.#timer = setTimeout(() => this.#stop.abort(failure()), idleMs);
  }

  [Symbol.dispose](): void {
    this.pause();
  }
}

/** The same pieces; waiting for one of them does not count. */
export async function* stopDuringWaits(
  pieces: AsyncIterable<Buffer>,
  progress: ProgressTimeout,
): AsyncGenerator<Buffer> {
  progress.pause();
  for await (const piece of pieces) {
    progress.resume();
    yield piece;
    progress.pause();
  }
  progress.resume();
}

/** The same pieces; only waiting for one of them counts. */
export async function* runDuringWaits(
  pieces: AsyncIterable<Buffer>,
  progress: ProgressTimeout,
): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    progress.pause();
    yield piece;
    progress.resume();
  }
}
