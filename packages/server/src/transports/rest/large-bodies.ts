import { PlatformError } from '@svc/contract';
import type { FastifyReply } from 'fastify';

const MAX_AT_ONCE = 4;
/** One organization gets no more than one of so many parts. */
const SHARES = 2;
const RETRY_AFTER_SECONDS = 1;

/** Bodies beyond the usual size are held in memory whole: so many at a time, whoever sends them. */
export class LargeBodies {
  readonly #owners: string[] = [];

  /** Dispose of it when the body was read. @throws PlatformError `rate_limited` */
  take(owner: string, reply: FastifyReply): Disposable {
    const own = this.#owners.filter((each) => each === owner).length;
    if (this.#owners.length >= MAX_AT_ONCE || own >= MAX_AT_ONCE / SHARES) {
      reply.header('retry-after', String(RETRY_AFTER_SECONDS));
      const message = 'As many large bodies are being read as may at once; send it again in a moment';
      throw new PlatformError('rate_limited', message, { details: { max_at_once: MAX_AT_ONCE } });
    }
    this.#owners.push(owner);
    return { [Symbol.dispose]: () => void this.#owners.splice(this.#owners.indexOf(owner), 1) };
  }
}
