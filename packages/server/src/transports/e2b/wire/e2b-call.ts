import { isIP } from 'node:net';
import { PlatformError } from '@svc/contract';
import { readEnvelope } from '@svc/contract/errors';
import {
  checkRestInput,
  type RestInput,
  type RestOperationName,
  type RestOperations,
  type RestOutput,
} from '@svc/contract/rest';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authority } from '../../../access/authorize-rest.ts';
import type { RestAnswer, RestDispatch, RestRequest } from '../../../dispatch/rest-dispatch.ts';
import { CALLER_GONE } from '../../http/caller-gone.ts';

const FIRST_FAILURE = 400;

type Parts<Name extends RestOperationName> = Partial<RestInput<RestOperations[Name]>>;

/** Decides for each operation in whose name it is called. */
type Admit = (name: RestOperationName) => Promise<Authority>;

/**
 * One request of an E2B client. What it asks for is done by operations of the control plane, with their checks, quotas, events and
 * idempotency.
 */
export class E2bCall {
  readonly requestId: string;
  readonly sourceAddress: string | null;
  readonly #dispatch: Pick<RestDispatch, 'call'>;
  readonly #userAgent: string;
  readonly #admit: Admit;
  readonly #gone = new AbortController();

  constructor(
    dispatch: Pick<RestDispatch, 'call'>,
    { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
    admit: Admit,
  ) {
    this.#dispatch = dispatch;
    const address = request.socket.remoteAddress ?? '';
    this.requestId = request.id;
    this.sourceAddress = isIP(address) === 0 ? null : address;
    this.#userAgent = request.headers['user-agent'] ?? '';
    this.#admit = admit;
    reply.raw.once('close', () => this.#gone.abort(CALLER_GONE));
  }

  /** Aborts when the client goes away. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /**
   * @param repeat set when the client may send the request again: its idempotency key, and what identifies the request
   * @throws PlatformError
   */
  async rest<Name extends RestOperationName>(
    name: Name,
    parts: Parts<Name>,
    {
      signal = this.signal,
      repeat,
    }: {
      readonly signal?: AbortSignal;
      readonly repeat?: { readonly key: string; readonly identity: string };
    } = {},
  ): Promise<RestOutput<RestOperations[Name]>> {
    const authority = await this.#admit(name);
    const part = (key: 'params' | 'query' | 'headers' | 'body', otherwise: unknown) =>
      checkRestInput(name, key, parts[key] ?? otherwise);
    const request: RestRequest = {
      input: {
        params: part('params', {}),
        query: part('query', {}),
        headers: part('headers', {}),
        body: part('body', undefined),
      },
      slug: undefined,
      authorization: undefined,
      idempotencyKey: repeat?.key,
      identity: repeat?.identity ?? '',
      bodyDigest: undefined,
      context: {
        requestId: this.requestId,
        sourceAddress: this.sourceAddress,
        userAgent: this.#userAgent,
        expectedVersion: null,
        signal,
        setHeader: () => undefined,
        setSession: () => undefined,
      },
    };
    const answer = await this.#dispatch.call(name, request, authority);
    const output = answer.kind === 'replay' ? readReplay(answer) : answer.output;
    // The handler of this operation returned it, now or when the request came first.
    return output as RestOutput<RestOperations[Name]>;
  }
}

/** The stored answer to an earlier request with the same idempotency key. */
function readReplay({ status, body }: Extract<RestAnswer, { readonly kind: 'replay' }>): unknown {
  if (status < FIRST_FAILURE) return JSON.parse(body);
  throw readEnvelope(body) ?? new PlatformError('internal', 'the answer to the first request was lost');
}
