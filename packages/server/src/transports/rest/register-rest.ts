import { isIP } from 'node:net';
import { PlatformError } from '@svc/contract';
import {
  BYTES,
  checkRestInput,
  EVENT_STREAM,
  REST_OPERATIONS,
  takesVersion,
  type ByteSource,
  type RestOperation,
  type RestOperationName,
  type ServerEvent,
} from '@svc/contract/rest';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Authority } from '../../access/authorize-rest.ts';
import {
  badField,
  type RequestContext,
  type RestDispatch,
  type RestRequest,
} from '../../dispatch/rest-dispatch.ts';
import type { FairLimit } from '../../access/fair-limit.ts';
import { claimConnection } from '../http/connection-limit.ts';
import { isPreflight } from '../http/create-http-server.ts';
import { CALLER_GONE } from '../http/caller-gone.ts';
import type { RateLimiter } from '../http/rate-limiter.ts';
import { nameRequest } from '../http/trace-requests.ts';
import { readJsonBody, streamBody } from './read-body.ts';
import { REST_PREFIX, sendRestFailure } from '../http/rest-failure.ts';
import { sessionCookie, sessionOf } from './session-cookie.ts';
import { nothingAt, RestAddresses } from './rest-addresses.ts';
import { sendBytes, sendEvents } from './send-stream.ts';

const MAX_AT_ONCE = 4;
/** One organization gets no more than one of so many parts. */
const SHARES = 2;
const RETRY_AFTER_SECONDS = 1;
const PARTIAL_CONTENT = 206;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const MAX_IDEMPOTENCY_KEY_LENGTH = 255;

export interface RestTransportParts {
  readonly dispatch: RestDispatch;
  readonly maxBodyBytes: number;
  /** Of a body that is streamed and therefore not limited otherwise. */
  readonly maxBodyPauseMs: number;
  readonly rateLimiter: RateLimiter | null;
  /** Held calls and streams among them. */
  readonly calls: FairLimit;
  readonly logger: Logger;
}

/** The control plane: the operations of the table, and nothing else. */
export function registerRest(server: FastifyInstance, parts: RestTransportParts): void {
  const addresses = new RestAddresses();
  const withRoom = { ...parts, largeBodies: new LargeBodies() };
  server.decorateRequest('restRoute');
  void server.register(
    async (scope) => {
      scope.removeAllContentTypeParsers();
      // The route reads the body itself, after authentication.
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
      scope.setErrorHandler((error, request, reply) => sendRestFailure(error, request, reply, parts.logger));
      scope.setNotFoundHandler((request, reply) => {
        if (isPreflight(request)) return reply.code(204).send();
        // A method of no operation: it depends on the address what is wrong.
        addresses.operationOf(request, reply);
        throw nothingAt(request);
      });
      scope.route({
        method: METHODS,
        url: '/*',
        exposeHeadRoute: false,
        config: { isBodyStreamed: (request) => addresses.isBodyStreamed(request) },
        onRequest: (request, _reply, done) => {
          // A streamed body is bytes, regardless of its content type.
          if (addresses.isBodyStreamed(request)) delete request.headers['content-type'];
          done();
        },
        handler: async (request, reply) =>
          await answer(withRoom, addresses.operationOf(request, reply), request, reply),
      });
      await Promise.resolve();
    },
    { prefix: REST_PREFIX },
  );
}

async function answer(
  parts: RestTransportParts & { readonly largeBodies: LargeBodies },
  name: RestOperationName,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const operation: RestOperation = REST_OPERATIONS[name];
  // No name has one, and databases do not agree what to do with it.
  if (request.url.includes('%00')) throw badField('path', 'must not contain NUL');
  const { slug, ...params } = request.restRoute?.params ?? {};
  const route = `${REST_PREFIX}${slug === undefined ? '' : '/orgs/{slug}'}${operation.path}`;
  nameRequest(`${request.method} ${route}`, route, params['sandbox_id']);
  const { 'idempotency-key': key } = request.headers;
  const authorization = request.headers.authorization ?? sessionOf(request);
  const asked = { slug, authorization, isRepeatable: key !== undefined };
  const admit = () => parts.dispatch.admit(name, asked);
  const authority = await admit();
  const owner = authority.organization?.slug ?? authority.user?.id ?? `address ${request.ip}`;
  parts.rateLimiter?.take(owner, reply);
  const shareOwner = authority.isOperator ? null : owner;
  const leave = parts.calls.enter(shareOwner);
  reply.raw.once('close', leave);
  claimConnection(request.socket, shareOwner);
  // A body that came with its head is there before this is called.
  let isHeldBack = false;
  const later = setImmediate(() => (isHeldBack = !request.raw.complete));
  const restRequest = await readRequest(parts, name, request, reply, { slug, params, owner });
  clearImmediate(later);
  // A caller that sends the body late may have lost its permission meanwhile.
  const current = isHeldBack ? await admit() : authority;
  const result = await parts.dispatch.call(name, restRequest, current);
  if (result.kind === 'replay') {
    reply.header('idempotency-replayed', 'true');
    return await reply.code(result.status).header('content-type', 'application/json').send(result.body);
  }
  const { output } = result;
  reply.code(operation.status);
  // A handler that answers with a part of something says which.
  if (reply.hasHeader('content-range')) reply.code(PARTIAL_CONTENT);
  // The handler's output is of the kind that the table says.
  if (operation.output === BYTES) return await sendBytes(reply, output as ByteSource);
  if (operation.output === EVENT_STREAM) {
    const isAllowed = stillAllowed(admit, current);
    return await sendEvents(reply, output as AsyncIterable<ServerEvent>, { isAllowed });
  }
  return await reply.header('content-type', 'application/json').send(JSON.stringify(output));
}

/** Checks the permission again while a stream is open, because a stream may never end. */
function stillAllowed(admit: () => Promise<Authority>, { organization }: Authority): () => Promise<boolean> {
  return async () => {
    try {
      return (await admit()).organization?.id === organization?.id;
    } catch (error) {
      // A store that cannot be asked says nothing about the caller.
      return !PlatformError.is(error);
    }
  };
}

async function readRequest(
  { maxBodyBytes, maxBodyPauseMs, largeBodies }: RestTransportParts & { readonly largeBodies: LargeBodies },
  name: RestOperationName,
  request: FastifyRequest,
  reply: FastifyReply,
  path: {
    readonly slug: string | undefined;
    readonly params: Record<string, string>;
    readonly owner: string;
  },
): Promise<RestRequest> {
  const operation: RestOperation = REST_OPERATIONS[name];
  const params = checkRestInput(name, 'params', path.params);
  const query = checkRestInput(name, 'query', request.query);
  const headers = checkRestInput(name, 'headers', pickHeaders(operation, request));
  const streamed = operation.body === BYTES ? streamBody(request.raw, maxBodyPauseMs) : undefined;
  const json =
    operation.body === null || streamed !== undefined
      ? undefined
      : await readJsonBody(request.raw, {
          maxBytes: Math.max(operation.maxBodyBytes ?? 0, maxBodyBytes),
          usualBytes: maxBodyBytes,
          reserve: () => largeBodies.take(path.owner),
        });
  const body = json === undefined ? streamed?.content : checkRestInput(name, 'body', json.value);
  return {
    input: { params, query, headers, body },
    slug: path.slug,
    authorization: request.headers.authorization,
    idempotencyKey: idempotencyKeyOf(operation, request),
    identity: JSON.stringify([operation.method, request.url, headers, json?.value ?? null]),
    bodyDigest: streamed?.digest,
    context: contextOf(operation, request, reply),
  };
}

/** Headers of the reference client's spelling count as ours. */
function pickHeaders(operation: RestOperation, request: FastifyRequest): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const name of Object.keys(operation.headers.properties)) {
    const value = request.headers[name] ?? request.headers[name.replace(/^x-svc-/, 'x-msb-')];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

function idempotencyKeyOf(operation: RestOperation, request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined || operation.method === 'GET') return undefined;
  if (typeof key === 'string' && key.length > 0 && key.length <= MAX_IDEMPOTENCY_KEY_LENGTH) return key;
  throw badField('Idempotency-Key', `must have 1–${MAX_IDEMPOTENCY_KEY_LENGTH} characters`);
}

function contextOf(operation: RestOperation, request: FastifyRequest, reply: FastifyReply): RequestContext {
  // Created on first use: most calls end before their caller could disconnect.
  let gone: AbortController | undefined;
  let isGone = false;
  // Also after a complete answer, so that work that still follows a source for it ends.
  reply.raw.once('close', () => {
    isGone = true;
    gone?.abort(CALLER_GONE);
  });
  const address = request.socket.remoteAddress ?? '';
  return {
    requestId: request.id,
    sourceAddress: isIP(address) === 0 ? null : address,
    userAgent: request.headers['user-agent'] ?? '',
    expectedVersion: versionOf(operation, request.headers['if-match']),
    get signal() {
      gone ??= new AbortController();
      if (isGone) gone.abort(CALLER_GONE);
      return gone.signal;
    },
    setHeader: (name, value) => void reply.header(name, value),
    setSession: (session) => void reply.header('set-cookie', sessionCookie(request, session)),
  };
}

/** Versions are sent as strong entity tags: `"7"`. A condition on a resource without a version is refused. */
function versionOf(operation: RestOperation, ifMatch: string | undefined): number | null {
  if (ifMatch === undefined || operation.method === 'GET') return null;
  if (!takesVersion(operation))
    throw badField('If-Match', 'is not taken here: what this changes has no versions');
  if (ifMatch === '*') return null;
  const version = /^"(\d{1,15})"$/.exec(ifMatch)?.[1];
  if (version === undefined) throw badField('If-Match', 'must be the ETag of an earlier answer, or *');
  return Number(version);
}

/** Limits bodies above the usual size, which are held in memory whole, per owner and in all. */
class LargeBodies {
  readonly #owners: string[] = [];

  /** Dispose of it when the body was read. @throws PlatformError `rate_limited` */
  take(owner: string): Disposable {
    const own = this.#owners.filter((each) => each === owner).length;
    if (this.#owners.length >= MAX_AT_ONCE || own >= MAX_AT_ONCE / SHARES) {
      const message = 'As many large bodies are being read as may at once; send it again in a moment';
      throw new PlatformError('rate_limited', message, {
        details: { max_at_once: MAX_AT_ONCE, retry_after_seconds: RETRY_AFTER_SECONDS },
      });
    }
    this.#owners.push(owner);
    return { [Symbol.dispose]: () => void this.#owners.splice(this.#owners.indexOf(owner), 1) };
  }
}
