import { ERROR_STATUS, PlatformError, type ErrorCode, type ErrorEnvelope } from '@svc/contract';
import { unavailableIfOutOfFiles } from '@svc/contract/out-of-files';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { hasBrokenOff, isCallerGone } from './caller-gone.ts';
import type { IncomingMessage } from 'node:http';

/** How long the rest of a refused body is read. */
const LINGER_MS = 5000;

export const REST_PREFIX = '/v1';

export interface RestFailure {
  readonly status: number;
  readonly body: ErrorEnvelope;
}

const CONFLICT = 409;
const ORCHESTRATOR_UNREACHABLE = 'orchestrator unreachable';

/** The answer to a failed request, for errors of handlers, the transport and the HTTP framework. */
export function describeRestFailure(thrown: unknown, requestId: string): RestFailure {
  const error = unavailableIfOutOfFiles(thrown);
  if (PlatformError.is(error)) {
    const { code, isConflict } = error;
    const { message, details } = inWordsOfSpecification(error);
    return { status: isConflict ? CONFLICT : ERROR_STATUS[code], body: envelope(code, message, details) };
  }
  const known = frameworkFailure(error);
  if (known !== undefined) return known;
  const message = `The server met a bug; its log says more under request ${requestId}`;
  return { status: 500, body: envelope('internal', message, { request_id: requestId }) };
}

/** The specification prescribes one message for this code; the cause goes into the details. */
function inWordsOfSpecification({ code, message, details }: PlatformError) {
  if (code !== 'orchestrator_unreachable' || message === ORCHESTRATOR_UNREACHABLE)
    return { message, details };
  return { message: ORCHESTRATOR_UNREACHABLE, details: { ...details, reason: message } };
}

export function sendRestFailure(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): void {
  const { status, body } = describeRestFailure(error, request.id);
  if (status === 500 && !isCallerGone(error) && !hasBrokenOff(request.raw)) {
    // The route instead of the URL, which may contain the token of an invite.
    const route = request.restRoute?.value.path ?? request.routeOptions.url;
    logger.error({ err: error, requestId: request.id, route }, 'a request failed');
  }
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  setRetryAfter(error, reply);
  void reply.code(status).header('content-type', 'application/json').send(JSON.stringify(body));
  discardBody(request.raw);
}

/** Sets `Retry-After` from the details of an error, on every surface. */
export function setRetryAfter(error: unknown, reply: FastifyReply): void {
  const seconds = PlatformError.is(error) ? error.details?.['retry_after_seconds'] : undefined;
  if (typeof seconds === 'number') reply.header('retry-after', String(seconds));
}

function envelope(
  code: ErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>> | null = null,
): ErrorEnvelope {
  return { error: { code, message, details } };
}

/** The answer to an error of the HTTP framework about the request; undefined for other errors. */
function frameworkFailure(error: unknown): RestFailure | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  const { statusCode } = error;
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode >= 500) return undefined;
  if (statusCode === 404)
    return { status: 404, body: envelope('not_found', 'There is nothing at this address') };
  if (statusCode === 413) {
    return { status: 413, body: envelope('payload_too_large', 'The request body is too large') };
  }
  const { field, reason } = frameworkReason(error);
  return { status: 400, body: envelope('invalid_request', `${field} ${reason}`, { field, reason }) };
}

/** Field and reason of a request that the framework refused before routing. */
function frameworkReason(error: Error): { readonly field: string; readonly reason: string } {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'FST_ERR_BAD_URL')
    return { field: 'path', reason: 'is not valid: it has an escape that stands for no text' };
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return { field: 'content-type', reason: 'is not one that is taken here' };
  return { field: 'request', reason: `is not valid: ${error.message}` };
}

/**
 * Reads and discards the rest of a body. Closing the connection at once would lose the answer: a client that is still
 * sending sees a broken connection instead of the reason.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.complete) return;
  // The refused reader still listens for 'readable', which disables `resume`. A listener for 'data' is needed because
  // removing the other one would stop the flow again.
  request.removeAllListeners('readable');
  request.on('data', () => undefined);
  request.resume();
  const { socket } = request;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  timer.unref();
  request.once('end', () => clearTimeout(timer));
  request.once('close', () => clearTimeout(timer));
}
