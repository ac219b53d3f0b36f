import { refused } from './image-failures.ts';

/**
 * Ends work on hostile bytes that makes no progress: the bytes may have compromised the program that reads them. `signal` aborts with
 * `invalid_image` after `maxIdleMs` without a call of `note`. Waits for other things than these programs do not count.
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

  /** Starts the timeout again; `times` multiplies it. */
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

/** The same pieces; the timeout is stopped while the source is waited for. */
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

/** The same pieces; the timeout runs only while the source is waited for. */
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
