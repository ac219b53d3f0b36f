import { isIP } from 'node:net';
import { PlatformError } from '@svc/contract';
import {
  BYTES,
  checkRestInput,
  EVENT_STREAM,
  pathsOf,
  REST_OPERATIONS,
  type ByteSource,
  type RestOperation,
  type RestOperationName,
  type ServerEvent,
} from '@svc/contract/rest';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Authority } from '../../dispatch/authorize-rest.ts';
import {
  badField,
  type RequestContext,
  type RestDispatch,
  type RestRequest,
} from '../../dispatch/rest-dispatch.ts';
import { isPreflight } from '../http/create-http-server.ts';
import { applyConcessions } from './reference-client.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { readJsonBody, streamBody } from './read-body.ts';
import { REST_PREFIX, sendRestFailure } from './rest-failure.ts';
import { sendBytes, sendEvents } from './send-stream.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const MAX_IDEMPOTENCY_KEY_LENGTH = 255;

export interface RestTransportParts {
  readonly dispatch: RestDispatch;
  readonly maxBodyBytes: number;
  /** Of a body that is streamed and therefore not limited otherwise. */
  readonly maxBodyPauseMs: number;
  readonly rateLimiter: RateLimiter | null;
  readonly logger: Logger;
}

/** The control plane: a route per operation of the table, and nothing else. */
export function registerRest(server: FastifyInstance, parts: RestTransportParts): void {
  void server.register(
    async (scope) => {
      scope.removeAllContentTypeParsers();
      // Bodies are read by the route itself, after it knows who asks.
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
      scope.setErrorHandler((error, request, reply) => sendRestFailure(error, request, reply, parts.logger));
      scope.setNotFoundHandler((request, reply) => {
        if (isPreflight(request)) return reply.code(204).send();
        throw new PlatformError('not_found', `There is no ${request.method} ${request.url.split('?')[0]}`);
      });
      const methodsByUrl = new Map<string, Set<string>>();
      for (const { name, url, method } of listRoutes()) {
        const methods = methodsByUrl.get(url) ?? new Set();
        methodsByUrl.set(url, methods.add(method));
        const handler = (request: FastifyRequest, reply: FastifyReply) => answer(parts, name, request, reply);
        const isBodyStreamed = REST_OPERATIONS[name].body === BYTES;
        // A streamed body is bytes, whatever its sender calls it.
        const onRequest = isBodyStreamed ? [forgetContentType] : [];
        const exposeHeadRoute = !isAnswerStreamed(REST_OPERATIONS[name]);
        scope.route({ method, url, handler, onRequest, exposeHeadRoute, config: { isBodyStreamed } });
        if (method === 'GET' && exposeHeadRoute) methods.add('HEAD');
      }
      for (const [url, methods] of methodsByUrl) refuseOtherMethods(scope, url, methods);
      await Promise.resolve();
    },
    { prefix: REST_PREFIX },
  );
}

/** HEAD has no body to send: the stream would be read to its end for nobody, and one that follows has none. */
function isAnswerStreamed({ output }: RestOperation): boolean {
  return output === BYTES || output === EVENT_STREAM;
}

function forgetContentType(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  delete request.headers['content-type'];
  done();
}

interface Route {
  readonly name: RestOperationName;
  readonly url: string;
  readonly method: RestOperation['method'];
}

function listRoutes(): readonly Route[] {
  return Object.entries(REST_OPERATIONS).flatMap(([name, operation]: [string, RestOperation]) =>
    pathsOf(operation).map(({ path }) => ({
      // The entries of the table have its names.
      name: name as RestOperationName,
      url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      method: operation.method,
    })),
  );
}

function refuseOtherMethods(scope: FastifyInstance, url: string, methods: ReadonlySet<string>): void {
  const others = METHODS.filter((method) => !methods.has(method));
  if (others.length === 0) return;
  scope.route({
    method: others,
    url,
    handler: (request, reply) => {
      const allowed = [...methods].filter((method) => method !== 'HEAD').join(', ');
      reply.header('allow', allowed);
      throw new PlatformError('method_not_allowed', `${request.url.split('?')[0]} takes ${allowed} only`);
    },
  });
}

async function answer(
  parts: RestTransportParts,
  name: RestOperationName,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const operation: RestOperation = REST_OPERATIONS[name];
  // No name has one, and databases do not agree what to do with it.
  if (request.url.includes('%00')) throw badField('path', 'must not contain NUL');
  const { slug, ...params } = request.params as Record<string, string>;
  const admit = () => parts.dispatch.admit(name, { slug, authorization: request.headers.authorization });
  const authority = await admit();
  parts.rateLimiter?.take(authority.organization?.id ?? authority.user?.id ?? '', reply);
  const restRequest = await readRequest(parts, name, request, reply, { slug, params });
  const result = await parts.dispatch.call(name, restRequest, authority);
  if (result.kind === 'replay') {
    reply.header('idempotency-replayed', 'true');
    return await reply.code(result.status).header('content-type', 'application/json').send(result.body);
  }
  const { output } = result;
  reply.code(operation.status);
  // The handler's output is of the kind that the table says.
  if (operation.output === BYTES) return await sendBytes(reply, output as ByteSource);
  if (operation.output === EVENT_STREAM) {
    const isAllowed = whetherStill(admit, authority);
    return await sendEvents(reply, output as AsyncIterable<ServerEvent>, { isAllowed });
  }
  const shown = applyConcessions(output, restRequest.context.userAgent);
  return await reply.header('content-type', 'application/json').send(JSON.stringify(shown));
}

/** Streams have no end of their own: whoever may not ask any more is not told any more. */
function whetherStill(admit: () => Promise<Authority>, { organization }: Authority): () => Promise<boolean> {
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
  { maxBodyBytes, maxBodyPauseMs }: RestTransportParts,
  name: RestOperationName,
  request: FastifyRequest,
  reply: FastifyReply,
  path: { readonly slug: string | undefined; readonly params: Record<string, string> },
): Promise<RestRequest> {
  const operation: RestOperation = REST_OPERATIONS[name];
  const params = checkRestInput(name, 'params', path.params);
  const query = checkRestInput(name, 'query', request.query);
  const headers = checkRestInput(name, 'headers', pickHeaders(operation, request));
  const streamed = operation.body === BYTES ? streamBody(request.raw, maxBodyPauseMs) : undefined;
  const json =
    operation.body === null || streamed !== undefined
      ? undefined
      : await readJsonBody(request.raw, maxBodyBytes);
  const body = json === undefined ? streamed?.content : checkRestInput(name, 'body', json.value);
  return {
    input: { params, query, headers, body },
    slug: path.slug,
    authorization: request.headers.authorization,
    idempotencyKey: idempotencyKeyOf(operation, request),
    identity: JSON.stringify([operation.method, request.url, headers, json?.value ?? null]),
    bodyDigest: streamed?.digest,
    context: contextOf(request, reply),
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

/** One for all: where it was made says nothing. */
const CALLER_GONE = new Error('the caller went away');

function contextOf(request: FastifyRequest, reply: FastifyReply): RequestContext {
  // Made for those who ask for it: most calls are over before anybody could go away.
  let gone: AbortController | undefined;
  let isGone = false;
  // Also after an answer that was sent whole: what still follows something for it is to end.
  reply.raw.once('close', () => {
    isGone = true;
    gone?.abort(CALLER_GONE);
  });
  const address = request.socket.remoteAddress ?? '';
  return {
    requestId: request.id,
    sourceAddress: isIP(address) === 0 ? null : address,
    userAgent: request.headers['user-agent'] ?? '',
    expectedVersion: versionOf(request.headers['if-match']),
    get signal() {
      gone ??= new AbortController();
      if (isGone) gone.abort(CALLER_GONE);
      return gone.signal;
    },
    setHeader: (name, value) => void reply.header(name, value),
  };
}

/** Versions are sent as strong entity tags: `"7"`. */
function versionOf(ifMatch: string | undefined): number | null {
  if (ifMatch === undefined || ifMatch === '*') return null;
  const version = /^"(\d{1,15})"$/.exec(ifMatch)?.[1];
  if (version === undefined) throw badField('If-Match', 'must be the ETag of an earlier answer, or *');
  return Number(version);
}
