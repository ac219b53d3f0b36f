import { createHash, randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import { checkRestInput, type ServerEvent } from '@svc/contract/rest';
import type { Logger } from 'pino';
import type { RawData, WebSocket } from 'ws';
import type { FairLimit } from '../../access/fair-limit.ts';
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
import type { Visit } from './web-socket-upgrades.ts';

const OPERATION = 'code.stream';
/** Runs stop sending while more unsent bytes than this are queued for the client. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** After this time without another event, the client is told that its run has begun. */
const BEGUN_MS = 1000;

export interface CodeChannelParts {
  readonly dispatch: Pick<RestDispatch, 'call'>;
  /** Limits concurrent calls; each run is one. */
  readonly calls: FairLimit;
  /** Limit of the corresponding HTTP request. */
  readonly maxBodyBytes: number;
  readonly rateLimiter: RateLimiter | null;
  readonly events: EventQueue;
  readonly keepAliveMs: number;
  readonly logger: Pick<Logger, 'error'>;
}

/**
 * Runs code over a WebSocket that stays open, as `POST …/code/stream` does over a request. A client sends objects
 * with increasing `id`s of its own choice; the events of a run carry its `id`. Messages to the client are lines of
 * JSON.
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
  /** Lines to send at the end of this turn of the event loop. */
  #lines = '';
  #saying: NodeJS.Immediate | undefined;
  #sent: Promise<void> = Promise.resolve();

  constructor(client: WebSocket, visit: Visit, parts: CodeChannelParts) {
    this.#client = client;
    this.#visit = visit;
    this.#parts = parts;
    const keepAlive = new KeepAlive(client, { keepAliveMs: parts.keepAliveMs, recheck: visit.recheck });
    // ws closes the connection itself, with a fitting code; the listener prevents an uncaught error.
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
        // The handler returns the output type that the table declares.
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

  /** Writes the event concurrently with the start of the code. */
  #note(event: NewEvent, over: AbortController): void {
    this.#parts.events
      .append(event)
      .catch(() => over.abort(new PlatformError('unavailable', 'the audit log cannot be written')));
  }

  /** The identity of a run: a repeated request with the same code resumes the run instead of starting another. */
  #workOf(name: RunName, body: unknown, isRepeat: boolean): Work {
    const { sandbox, authority } = this.#visit;
    const id = createHash('sha256')
      .update(JSON.stringify([authority.organization.id, sandbox.id, name.connection, name.id, body]))
      .digest('hex')
      .slice(0, 32);
    return { id, isRepeat };
  }

  /** The event for a run that failed before it began; an HTTP request would get a status other than 200. */
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

  /** Batches the lines of one turn, because each piece wakes the client. */
  #say(line: object): void {
    this.#lines += `${JSON.stringify(line)}\n`;
    this.#saying ??= setImmediate(() => this.#flush());
  }

  #flush(): void {
    clearImmediate(this.#saying);
    this.#saying = undefined;
    const lines = this.#lines;
    this.#lines = '';
    // The callback also runs when the client has left; its close event cleans up.
    this.#sent = new Promise((resolve) => this.#client.send(lines, { binary: true }, () => resolve()));
  }
}
