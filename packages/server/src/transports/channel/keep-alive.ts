import { PlatformError } from '@svc/contract';
import type { WebSocket } from 'ws';
import { CLOSE } from './close.ts';

/** A look that comes so much later than it should says that this process did not run. */
const LATE_FACTOR = 1.5;

/**
 * Finds out when a client is gone without a word, and when it may not go on. A client that is being held back, or that is
 * slow to read, cannot answer a ping: it is pinged all the same, because writing to a connection that is gone fails, but
 * its silence is not held against it. Nor is it when this process could not listen meanwhile, because it was stopped or starved:
 * the answer may lie there unread.
 */
export class KeepAlive {
  readonly #client: WebSocket;
  readonly #recheck: () => Promise<void>;
  readonly #latestMs: number;
  readonly #timer: NodeJS.Timeout;
  #lookedAt = performance.now();
  #isAnswerDue = false;

  constructor(
    client: WebSocket,
    options: { readonly keepAliveMs: number; readonly recheck: () => Promise<void> },
  ) {
    this.#client = client;
    this.#recheck = options.recheck;
    this.#latestMs = options.keepAliveMs * LATE_FACTOR;
    const hear = () => (this.#isAnswerDue = false);
    client.on('pong', hear);
    client.on('message', hear);
    this.#timer = setInterval(() => void this.#look(), options.keepAliveMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const client = this.#client;
    const isLate = this.#isLate();
    const isHeldUp = client.isPaused || client.bufferedAmount > 0 || isLate;
    if (this.#isAnswerDue && !isHeldUp) return client.terminate();
    this.#isAnswerDue = !isHeldUp;
    client.ping();
    try {
      await this.#recheck();
    } catch (error) {
      // A store that cannot be asked says nothing about the client.
      if (PlatformError.is(error)) client.close(CLOSE.refused, error.code);
    }
  }

  #isLate(): boolean {
    const before = this.#lookedAt;
    this.#lookedAt = performance.now();
    return this.#lookedAt - before > this.#latestMs;
  }
}
