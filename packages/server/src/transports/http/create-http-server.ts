import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PlatformError } from '@svc/contract';
import { LINK_PATH } from '@svc/contract/rest';
import type { Logger } from 'pino';
import type { Guard } from './guard.ts';
import type { HttpLimits } from './http-limits.ts';
import type { Tracer } from '../../tracing/tracer.ts';
import { traceRequests } from './trace-requests.ts';
import { describeHttpFailure, refuseConnection } from './http-failure.ts';
import { isRpcPath } from './rpc-envelope.ts';
import { discardBody, REST_PREFIX, sendRestFailure, setRetryAfter } from './rest-failure.ts';
import { hasBrokenOff, isCallerGone } from './caller-gone.ts';

const KEEP_ALIVE_MS = 72_000;
/** Interval of the checks for incomplete requests. */
const CHECK_MS = 1000;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Security headers: browsers must not treat an answer as a page, script or picture, and pages of other origins must
 * not load it. Pages of this server override them.
 */
const NO_PAGE = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
} as const;

/** Creates the HTTP server without routes: requests pass the guard, and every failure has a structured body. */
export function createHttpServer(parts: {
  readonly guard: Guard;
  readonly limits: HttpLimits;
  readonly logger: Logger;
  /** Null: requests are not traced. */
  readonly tracer: Tracer | null;
  /** The path that a request is answered at; absent: its own. */
  readonly rewriteUrl?: (request: IncomingMessage) => string;
}): FastifyInstance {
  const { guard, limits, logger, tracer, rewriteUrl = ({ url = '/' }) => url } = parts;
  const server = Fastify({
    bodyLimit: limits.maxBodyBytes,
    rewriteUrl,
    // Applies to the head only; see `limitBodyTime`.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headTimeoutMs,
      connectionsCheckingInterval: CHECK_MS,
      // The guard refuses requests without Host, with our error format.
      requireHostHeader: false,
      // Offers of other protocols, such as HTTP/2, may be ignored; the request is then answered as it is.
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === 'websocket',
    },
    clientErrorHandler: refuseConnection,
    genReqId: (request) => requestIdOf(request.headers['x-request-id']),
    exposeHeadRoutes: true,
    // `refuseWhileEnding` does this with our error format.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // No route has a schema for the framework: dispatch validates inputs. Otherwise the framework loads a schema
    // compiler at every start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    frameworkErrors: (error, request, reply) => sendFailure(error, request, reply, logger),
  });
  refuseWhileEnding(server);
  limitBodyTime(server, limits.requestTimeoutMs);
  if (tracer !== null) traceRequests(server, tracer);
  guardRequests(server, guard);
  server.setErrorHandler((error, request, reply) => sendFailure(error, request, reply, logger));
  server.setNotFoundHandler((request, reply) => {
    if (isPreflight(request)) return reply.code(204).send();
    throw new PlatformError('not_found', `There is no ${request.method} ${request.url.split('?')[0]}`);
  });
  readJsonBodies(server);
  return server;
}

function guardRequests(server: FastifyInstance, guard: Guard): void {
  server.addHook('onRequest', (request, reply, done) => {
    try {
      begin(request, reply);
      admit(guard, request, reply);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
}

/** Checks host and origin of a request, and lets the page that sent it read the answer. @throws PlatformError `forbidden` */
function admit(guard: Guard, request: FastifyRequest, reply: FastifyReply): void {
  const { origin } = request.headers;
  const isOpen = isFileLink(request.url);
  if (isOpen) guard.checkHost(request.headers);
  else guard.check(request.headers);
  if (isOpen) allowEveryPage(reply);
  else if (origin !== undefined && guard.allowsCors(origin)) allowCors(origin, reply);
}

/** Refuses requests on open connections during shutdown. */
function refuseWhileEnding(server: FastifyInstance): void {
  let isEnding = false;
  server.addHook('preClose', (done) => {
    isEnding = true;
    done();
  });
  server.addHook('onRequest', (_request, _reply, done) => {
    done(
      isEnding ? new PlatformError('unavailable', 'The server is ending; try again in a moment') : undefined,
    );
  });
}

/**
 * Passes bodies as bytes to the routes, which parse them, because each surface reports a syntax error in its own
 * format.
 */
function readJsonBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(/^application\/json\b/, { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
}

function noSchemas(): never {
  throw new Error('routes have no schemas for the framework');
}

function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply, logger: Logger): void {
  // URLs that cannot be decoded are refused before the hook that does this.
  if (!reply.hasHeader('x-request-id')) begin(request, reply);
  if (!isRpcPath(request.url)) {
    sendRestFailure(error, request, reply, logger);
    return;
  }
  const { status, body } = describeHttpFailure(error, request.id);
  if (status >= 500 && !isCallerGone(error) && !hasBrokenOff(request.raw))
    logger.error({ err: error, requestId: request.id, url: request.url }, 'a request failed');
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  setRetryAfter(error, reply);
  // The framework closes the connection after a body that is too large, which would lose the answer.
  if (status === 413) reply.removeHeader('connection');
  void reply.code(status).header('content-type', 'application/json').send(JSON.stringify(body));
  discardBody(request.raw);
}

function begin(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).headers(NO_PAGE);
}

function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID.test(header) ? header : randomUUID();
}

export function isPreflight(request: FastifyRequest): boolean {
  return request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
}

/** A link to a file is a credential of its own, and nothing else that a browser would add counts there. */
function isFileLink(url: string): boolean {
  return url.split('?', 1)[0] === `${REST_PREFIX}${LINK_PATH}`;
}

function allowEveryPage(reply: FastifyReply): void {
  reply.header('access-control-allow-origin', '*');
  reply.header('access-control-allow-methods', 'GET, PUT');
  reply.header('access-control-allow-headers', 'content-type, range, if-range, x-request-id');
  reply.header(
    'access-control-expose-headers',
    'accept-ranges, content-disposition, content-length, content-range, retry-after, x-request-id',
  );
  reply.header('access-control-max-age', '600');
}

function allowCors(origin: string, reply: FastifyReply): void {
  reply.header('access-control-allow-origin', origin);
  reply.header('vary', 'Origin');
  reply.header('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE');
  reply.header(
    'access-control-allow-headers',
    'authorization, content-type, idempotency-key, if-match, if-range, range, mcp-session-id, mcp-protocol-version, last-event-id, x-request-id, x-svc-file-path, x-svc-file-recursive, x-svc-page',
  );
  reply.header(
    'access-control-expose-headers',
    'accept-ranges, content-range, etag, idempotency-replayed, mcp-session-id, ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, x-request-id',
  );
  reply.header('access-control-max-age', '600');
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A streamed body has no total time limit; its reader limits the pauses. */
    isBodyStreamed?: (request: FastifyRequest) => boolean;
  }
}

/** Refuses requests whose body is not complete in time. Node's own deadline would apply to streamed bodies too. */
function limitBodyTime(server: FastifyInstance, timeoutMs: number): void {
  server.addHook('onRequest', (request, reply, done) => {
    if (hasBody(request) && request.routeOptions.config.isBodyStreamed?.(request) !== true) {
      const timer = setTimeout(() => refuseSlowBody(request), timeoutMs);
      timer.unref();
      reply.raw.once('close', () => clearTimeout(timer));
    }
    done();
  });
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function refuseSlowBody({ raw }: FastifyRequest): void {
  if (raw.complete) return;
  const error = Object.assign(new Error('the body did not arrive in time'), {
    code: 'ERR_HTTP_REQUEST_TIMEOUT',
  });
  refuseConnection(error, raw.socket);
  raw.socket.destroySoon();
}
