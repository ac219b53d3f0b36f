import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ERROR_STATUS, PlatformError, type ErrorEnvelope } from '@svc/contract/errors';
import { createServer } from '@svc/contract/node-http';
import { unavailableIfOutOfFiles } from '@svc/contract/out-of-files';
import type { Logger } from 'pino';

/** One request, parsed. */
export interface Call {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
  /** The body as JSON. @throws PlatformError `invalid_request` */
  json(): Promise<unknown>;
  /** The failure as the caller sees it. */
  describe(error: unknown): Failure;
}

export interface Failure {
  readonly status: number;
  readonly envelope: ErrorEnvelope;
}

export interface HttpServerOptions {
  readonly logger: Logger;
  /** The fault of the data folder's disk, for a call that failed with this error; undefined: none. */
  readonly explainByDisk?: (error: unknown) => PlatformError | undefined;
}

/** Returns the JSON to send; undefined when it has sent the response itself. */
export type Handler = (call: Call) => Promise<unknown>;
export type Routes = Readonly<Record<string, Handler>>;
export type UpgradeHandler = (path: string, socket: Duplex, head: Buffer) => Promise<void>;

const MAX_BODY_BYTES = 96 * 1024 * 1024;

/** The engine's HTTP over its unix socket. `routes`: `METHOD /path/:param` → handler. */
export function createHttpServer(
  routes: Routes,
  upgrade: UpgradeHandler,
  options: HttpServerOptions,
): Server {
  const table = Object.entries(routes).map(([route, handler]) => ({ ...parseRoute(route), handler }));
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 65_000 }, (request, response) => {
    answer(table, request, response, options).catch((error: unknown) =>
      options.logger.error({ error }, 'an answer failed'),
    );
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    upgrade(request.url ?? '', socket, head).catch((error: unknown) => refuseUpgrade(socket, error, options));
  });
  return server;
}

interface Route {
  readonly method: string;
  readonly parts: readonly string[];
  readonly handler: Handler;
}

function parseRoute(route: string): Omit<Route, 'handler'> {
  const [method = '', path = ''] = route.split(' ');
  return { method, parts: path.split('/').slice(1) };
}

async function answer(
  table: readonly Route[],
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpServerOptions,
): Promise<void> {
  const describe = (error: unknown) => describeError(error, options);
  const gone = new AbortController();
  // A request that is given up half-way no longer has it.
  const { socket } = request;
  const begun = performance.now();
  response.once('close', () => {
    noteCall(request, response, performance.now() - begun, options.logger);
    if (!response.writableFinished) gone.abort(new Error('the caller went away'));
  });
  try {
    const { pathname, searchParams } = readUrl(request.url ?? '/');
    const { handler, params } = findRoute(table, request.method ?? '', pathname);
    const json = () => readJson(request);
    const result = await handler({
      params,
      query: searchParams,
      request,
      response,
      signal: gone.signal,
      json,
      describe,
    });
    if (result !== undefined) sendJson(response, 200, result);
  } catch (error) {
    if (gone.signal.aborted) return;
    const { status, envelope } = describe(error);
    if (response.headersSent) response.destroy();
    else sendJson(response, status, envelope);
    endUnread(request, socket);
  }
}

/** A refused upload is not read to its end, so its connection cannot have another request; the caller has this long to read the answer. */
const UNREAD_MS = 5000;

function endUnread({ complete: isComplete }: IncomingMessage, socket: Duplex): void {
  if (!isComplete) setTimeout(() => socket.destroy(), UNREAD_MS).unref();
}

/** SAFETY: the path names sandboxes and images; bodies and queries may hold secrets and stay out. */
function noteCall(
  { method, url = '' }: IncomingMessage,
  { statusCode: status, writableFinished: isWhole }: ServerResponse,
  durationMs: number,
  logger: Logger,
): void {
  const [path] = url.split('?');
  // Every watchdog asks for it every second.
  if (path !== '/pulse') logger.debug({ method, path, status, isWhole, durationMs }, 'call');
}

function readUrl(text: string): URL {
  const url = URL.parse(text, 'http://engine');
  if (url !== null) return url;
  throw new PlatformError('invalid_request', 'the path of the request is malformed');
}

function findRoute(
  table: readonly Route[],
  method: string,
  pathname: string,
): { handler: Handler; params: Record<string, string> } {
  const parts = pathname.split('/').slice(1);
  for (const route of table) {
    if (route.method !== method || route.parts.length !== parts.length) continue;
    const params = matchParts(route.parts, parts);
    if (params !== undefined) return { handler: route.handler, params };
  }
  throw new PlatformError('not_found', `the engine has no ${method} ${pathname}`);
}

function matchParts(
  pattern: readonly string[],
  parts: readonly string[],
): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const given = parts[index] ?? '';
    if (part.startsWith(':')) params[part.slice(1)] = decodePart(given);
    else if (part !== given) return undefined;
  }
  return params;
}

/** One percent-decoded segment of a path. @throws PlatformError `invalid_request` */
export function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new PlatformError('invalid_request', 'the path of the request has a malformed % sequence', {
      cause: error,
    });
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await readBody(request);
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw new PlatformError('invalid_request', 'the body is not JSON', { cause: error });
  }
}

/** Reads by events: the iterator of a stream takes a quarter of the time of a short call. */
function readBody(request: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) {
      chunks.push(chunk);
      return;
    }
    request.destroy();
    reject(new PlatformError('payload_too_large', `the body is larger than ${MAX_BODY_BYTES} bytes`));
  });
  request.once('end', () => resolve(Buffer.concat(chunks)));
  request.on('error', reject);
  return promise;
}

/** A bug is logged with its stack and reported as `internal`: callers never see a stack or a host path. */
function describeError(thrown: unknown, { logger, explainByDisk }: HttpServerOptions): Failure {
  const error = unavailableIfOutOfFiles(thrown);
  if (PlatformError.is(error)) return describePlatformError(error);
  logger.error({ error }, 'unexpected failure');
  const fault = explainByDisk?.(thrown);
  if (fault !== undefined) return describePlatformError(fault);
  const message = 'the engine failed unexpectedly; its log says why';
  return { status: 500, envelope: { error: { code: 'internal', message, details: null } } };
}

function describePlatformError({ code, message, details }: PlatformError): Failure {
  return { status: ERROR_STATUS[code], envelope: { error: { code, message, details } } };
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

function refuseUpgrade(socket: Duplex, error: unknown, options: HttpServerOptions): void {
  const { status, envelope } = describeError(error, options);
  const body = JSON.stringify(envelope);
  const head = `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}`;
  socket.end(`${head}\r\nconnection: close\r\n\r\n${body}`);
}
