import type { Duplex, Readable } from 'node:stream';
import { reset } from '../proxy/end-together.ts';
import { carryBulk, isBulk, type Answered } from './bulk-body.ts';
import type { Exchange } from './exchange.ts';

type Give = ((error: Error | null, connection: Duplex) => void) | undefined;

/**
 * The one connection to the server that a connection of a sandbox has, as requests and long bodies have it by turns. When the server
 * ends it, so does ours to the client: nothing is ever asked of anybody else.
 */
export class ServerLine {
  readonly #exchange: Exchange;
  #isTaken = false;
  /** A body that has it; settled when requests may have it again, or nobody any more. */
  #body: Promise<void> | null = null;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  /** For an agent, which has it until a body takes it. */
  give(done: Give): undefined {
    const { upstream, divert } = this.#exchange;
    const giveNow = () => {
      const isFree = !this.#isTaken && !upstream.destroyed;
      this.#isTaken = true;
      divert?.(null);
      done?.(isFree ? null : new Error('The server has ended the connection'), upstream);
    };
    if (this.#body === null) giveNow();
    else void this.#body.then(giveNow);
  }

  /** Resolves when it is a request's turn: those before it were sent, and no body has the connection. */
  async turnAfter(before: Promise<void>): Promise<void> {
    await before;
    await this.#body;
  }

  /**
   * Called while the head of an answer, which says how long its body is, is all that was read. False: the body takes the way of any
   * other. Node lets go of a connection only where an answer changes the protocol, so this one is called such.
   */
  takeBody(asked: Answered): boolean {
    const { client, upstream, divert } = this.#exchange;
    if (divert === null || !isBulk(asked)) return false;
    const { outgoing, answered, response } = asked;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#body = promise;
    const settle = (isTaken: boolean) => {
      // What comes before the next request is an answer to none.
      divert(() => {
        upstream.destroy();
        return false;
      });
      upstream.read(0);
      this.#isTaken = isTaken;
      this.#body = null;
      resolve();
    };
    outgoing.once('upgrade', (_, __, ahead: Buffer) => {
      const begun = [...buffered(answered), ahead, ...buffered(upstream)];
      const length = Number(answered.headers['content-length']);
      carryBulk({ begun, length, upstream, divert, response }).then(
        () => {
          settle(!response.shouldKeepAlive);
          response.end();
        },
        () => {
          settle(true);
          reset(client);
        },
      );
    });
    Object.assign(answered, { upgrade: true });
    return true;
  }
}

function buffered(stream: Readable): Buffer[] {
  const chunk = stream.read() as Buffer | null; // No encoding is set; all of it.
  return chunk === null ? [] : [chunk];
}
