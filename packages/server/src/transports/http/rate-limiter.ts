import { PlatformError } from '@svc/contract';
import type { FastifyReply } from 'fastify';

const WINDOW_SECONDS = 60;

/** Counts the requests of each caller in fixed windows of a minute, per server. */
export class RateLimiter {
  readonly #limit: number;
  readonly #counts = new Map<string, number>();
  #windowEndsAt = 0;

  constructor(requestsPerMinute: number) {
    this.#limit = requestsPerMinute;
  }

  /** Counts requests, and sets the rate limit headers of the reply, if any. @throws PlatformError `rate_limited` */
  take(caller: string, reply: FastifyReply | null, requests = 1): void {
    const now = performance.now() / 1000;
    if (now >= this.#windowEndsAt) {
      this.#windowEndsAt = now + WINDOW_SECONDS;
      this.#counts.clear();
    }
    const count = (this.#counts.get(caller) ?? 0) + requests;
    this.#counts.set(caller, count);
    const resetSeconds = Math.ceil(this.#windowEndsAt - now);
    reply?.header('ratelimit-limit', String(this.#limit));
    reply?.header('ratelimit-remaining', String(Math.max(0, this.#limit - count)));
    reply?.header('ratelimit-reset', String(resetSeconds));
    if (count <= this.#limit) return;
    throw new PlatformError('rate_limited', `too many requests; try again in ${resetSeconds} s`, {
      details: { limit: this.#limit, window_seconds: WINDOW_SECONDS, retry_after_seconds: resetSeconds },
    });
  }
}
