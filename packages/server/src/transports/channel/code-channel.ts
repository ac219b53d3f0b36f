import { createHash, randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import { checkRestInput, type ServerEvent } from '@svc/contract/rest';
import type { Logger } from 'pino';
import type { RawData, WebSocket } from 'ws';
import type { CallShares } from '../../access/call-shares.ts';
import type { RestDispatch, RestRequest } from '../../dispatch/rest-dispatch.ts';
import type { NewEvent } from '../../store/events.ts';
import type { Work } from '../../store/idempotency.ts';
import { activeSpan } from '../../tracing/span.ts';
import { CALLER_GONE, isCallerGone } from '../http/caller-gone.ts';
import type { RateLimiter } from '../http/rate-limiter.ts';
import { describeRestFailure } from '../http/rest-failure.ts';
import { tooLarge } from '../rest/read-body.ts';
import { CLOSE, closeReason } from './close.ts';
import { CodeMessageError, readCodeMessage, type RunMessage, type RunName } from './code-messages.ts';
import type { EventQueue } from './event-queue.ts';
import { KeepAlive } from './keep-alive.ts';
import { toBytes } from './raw-data.ts';
import type { Visit } from './web-socket-door.ts';

const OPERATION = 'code.stream';
/** Runs wait with what they have to tell while so much of it is on its way to the client. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** After so long a client is told that its code was taken, when there was nothing else to tell. */
const BEGUN_MS = 1000;

export interface CodeChannelParts {
  readonly dispatch: Pick<RestDispatch, 'call'>;
  /** Of calls at work: a run is one. */
  readonly calls: CallShares;
  /** Of a request that does the same. */
  readonly maxBodyBytes: number;
  readonly rateLimiter: RateLimiter | null;
  readonly events: EventQueue;
  readonly keepAliveMs: number;
  readonly logger: Pick<Logger, 'error'>;
}

/**
 * Runs code over a WebSocket that is held open, as `POST …/code/stream` does over a request. A client sends objects with an `id` of its
 * own, each greater than the one before; what comes back has the `id` of its run. Messages to the client are lines of JSON.
 */
export class CodeChannel {
  readonly #parts: CodeChannelParts;

  constructor(parts: CodeChannelParts) {
    this.#parts = parts;
  }

  async serve(visit: Visit): Promise<{ readonly over: Promise<void> }> {
    const client = await visit.accept();
    return { over: new CodeConnection(client, visit, this.#parts).over };
  }
}

class CodeConnection {
  readonly #client: WebSocket;
  readonly #visit: Visit;
  readonly #parts: CodeChannelParts;
  readonly #name = randomUUID();
  readonly #span = activeSpan();
  readonly #runs = new Map<number, AbortController>();
  readonly over: Promise<void>;
  #lastId = 0;
  /** What is to be said at the end of this turn of the event loop. */
  #lines = '';
  #saying: NodeJS.Immediate | undefined;
  #sent: Promise<void> = Promise.resolve();

  constructor(client: WebSocket, visit: Visit, parts: CodeChannelParts) {
    this.#client = client;
    this.#visit = visit;
    this.#parts = parts;
    const keepAlive = new KeepAlive(client, { keepAliveMs: parts.keepAliveMs, recheck: visit.recheck });
    // ws closes the connection by itself, with the code that fits; this only keeps the error from being thrown.
    client.on('error', () => undefined);
    client.on('message', (data) => this.#take(data));
    this.over = new Promise((resolve) => {
      client.once('close', () => {
        keepAlive.stop();
        clearImmediate(this.#saying);
        for (const run of this.#runs.values()) run.abort(CALLER_GONE);
        resolve();
      });
    });
    this.#span?.note({
      'svc.organization': visit.authority.organization.slug,
      'svc.sandbox.id': visit.sandbox.id,
    });
    this.#say({ connection: this.#name });
  }

  #take(data: RawData): void {
    if (this.#client.readyState !== this.#client.OPEN) return;
    try {
      const bytes = toBytes(data);
      const message = readCodeMessage(bytes);
      if (message.kind === 'cancel') this.#runs.get(message.id)?.abort(CALLER_GONE);
      else this.#begin(message, bytes.length > this.#parts.maxBodyBytes);
    } catch (error) {
      if (!(error instanceof CodeMessageError)) throw error;
      this.#client.close(CLOSE.protocolError, closeReason(error.message));
    }
  }

  #begin(message: RunMessage, isTooLarge: boolean): void {
    const { id } = message;
    if (id <= this.#lastId)
      throw new CodeMessageError(`id must be greater than ${this.#lastId}, the one before it`);
    this.#lastId = id;
    this.#span?.child('code', { attributes: { 'svc.sandbox.id': this.#visit.sandbox.id } }).end();
    const over = new AbortController();
    this.#runs.set(id, over);
    void this.#run(message, isTooLarge, over).finally(() => this.#runs.delete(id));
  }

  async #run({ id, run, again }: RunMessage, isTooLarge: boolean, over: AbortController): Promise<void> {
    const begun = setTimeout(() => this.#tell(id, { event: 'begun', data: {} }), BEGUN_MS);
    try {
      const { rateLimiter, calls, dispatch } = this.#parts;
      const { authority, owner } = this.#visit;
      rateLimiter?.take(authority.organization.slug, null);
      if (isTooLarge) throw tooLarge(this.#parts.maxBodyBytes);
      const leave = calls.enter(owner);
      try {
        const work = this.#workOf(again ?? { connection: this.#name, id }, run, again !== undefined);
        const answer = await dispatch.call(OPERATION, this.#requestOf(run, work, over), authority);
        if (answer.kind === 'replay') throw new Error('what has no key is not remembered');
        // The handler's output is of the kind that the table says.
        for await (const event of answer.output as AsyncIterable<ServerEvent>) {
          clearTimeout(begun);
          this.#tell(id, event);
          if (this.#client.bufferedAmount > MAX_UNSENT_BYTES) await this.#sent;
        }
      } finally {
        leave();
      }
    } catch (error) {
      this.#tell(id, this.#refusalOf(error));
    } finally {
      clearTimeout(begun);
    }
  }

  #requestOf(body: unknown, work: Work, over: AbortController): RestRequest {
    const { request, sandbox, sourceAddress } = this.#visit;
    return {
      input: {
        params: { sandbox_id: sandbox.id },
        query: {},
        headers: {},
        body: checkRestInput(OPERATION, 'body', body),
      },
      slug: undefined,
      authorization: undefined,
      idempotencyKey: undefined,
      identity: '',
      bodyDigest: undefined,
      work,
      context: {
        requestId: request.id,
        sourceAddress,
        userAgent: request.headers['user-agent'] ?? '',
        expectedVersion: null,
        signal: over.signal,
        setHeader: () => undefined,
        setSession: () => undefined,
        noteBeside: (event) => this.#note(event, over),
      },
    };
  }

  /** The code begins while its event is being written. */
  #note(event: NewEvent, over: AbortController): void {
    this.#parts.events
      .append(event)
      .catch(() => over.abort(new PlatformError('unavailable', 'the audit log cannot be written')));
  }

  /** Code that is asked for again runs once, if it is the same. */
  #workOf(name: RunName, body: unknown, isRepeat: boolean): Work {
    const { sandbox, authority } = this.#visit;
    const id = createHash('sha256')
      .update(JSON.stringify([authority.organization.id, sandbox.id, name.connection, name.id, body]))
      .digest('hex')
      .slice(0, 32);
    return { id, isRepeat };
  }

  /** Nothing came of it, as of a request that is not answered with 200. */
  #refusalOf(error: unknown): ServerEvent {
    if (isCallerGone(error)) return { event: 'cancelled', data: {} };
    const { status, body } = describeRestFailure(error, this.#visit.request.id);
    if (status === 500)
      this.#parts.logger.error({ err: error, requestId: this.#visit.request.id }, 'a run of code failed');
    return { event: 'refused', data: { status, ...body } };
  }

  #tell(id: number, { event, data }: ServerEvent): void {
    this.#say({ id, event, data });
    if (this.#lines.length > MAX_UNSENT_BYTES) this.#flush();
  }

  /** What is said in one turn goes together, because each piece wakes the client. */
  #say(line: object): void {
    this.#lines += `${JSON.stringify(line)}\n`;
    this.#saying ??= setImmediate(() => this.#flush());
  }

  #flush(): void {
    clearImmediate(this.#saying);
    this.#saying = undefined;
    const lines = this.#lines;
    this.#lines = '';
    // One that left is noticed by its end; nobody is told any more then.
    this.#sent = new Promise((resolve) => this.#client.send(lines, { binary: true }, () => resolve()));
  }
}
