import { PlatformError } from '@svc/contract';
import type { WebSocket } from 'ws';
import { CLOSE } from './close.ts';

/** A check that is late by this factor means that this process was not scheduled. */
const LATE_FACTOR = 1.5;

/**
 * Disconnects a client that is unreachable or has lost its permission. A client that is paused, or slow to read,
 * cannot answer a ping: it is pinged anyway, because a write to a dead connection fails, but a missing answer is
 * ignored. It is ignored too when this process was stopped or starved: the answer may be in the socket, unread.
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
    const onAnswer = () => (this.#isAnswerDue = false);
    client.on('pong', onAnswer);
    client.on('message', onAnswer);
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
      // An unavailable store is no reason to disconnect the client.
      if (PlatformError.is(error)) client.close(CLOSE.refused, error.code);
    }
  }

  #isLate(): boolean {
    const before = this.#lookedAt;
    this.#lookedAt = performance.now();
    return this.#lookedAt - before > this.#latestMs;
  }
}
