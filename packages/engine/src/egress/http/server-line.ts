import type { Duplex, Readable } from 'node:stream';
import { reset } from '../proxy/end-together.ts';
import { carryBulk, isBulk, type Answered } from './bulk-body.ts';
import type { Exchange } from './exchange.ts';

type Give = ((error: Error | null, connection: Duplex) => void) | undefined;

/**
 * The single connection to the server that belongs to a connection of a sandbox; requests and long bodies take turns on it. When the
 * server closes it, the connection to the client is closed as well: requests are never sent over another connection.
 */
export class ServerLine {
  readonly #exchange: Exchange;
  #isTaken = false;
  /** Set while a long body uses the connection; settles when requests may use it again, or the connection has ended. */
  #body: Promise<void> | null = null;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  /** Gives it to an HTTP agent, which keeps it until a body takes it. */
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

  /** Resolves when a request may be sent: the requests before it were sent, and no body uses the connection. */
  async turnAfter(before: Promise<void>): Promise<void> {
    await before;
    await this.#body;
  }

  /**
   * Called when only the head of a response with a known length has been read. False: the body is relayed like any
   * other. Node releases a connection only for responses that change the protocol, so this one is marked as such.
   */
  takeBody(asked: Answered): boolean {
    const { client, upstream, divert } = this.#exchange;
    if (divert === null || !isBulk(asked)) return false;
    const { outgoing, answered, response } = asked;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#body = promise;
    const settle = (isTaken: boolean) => {
      // Bytes before the next request belong to no response.
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
