import { ERROR_STATUS, PlatformError, type ErrorCode, type ErrorEnvelope } from '@svc/contract';
import { unavailableIfOutOfFiles } from '@svc/contract/out-of-files';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { hasBrokenOff, isCallerGone } from './caller-gone.ts';
import type { IncomingMessage } from 'node:http';

/** How long somebody may go on sending what nobody wants. */
const LINGER_MS = 5000;

export const REST_PREFIX = '/v1';

export interface RestFailure {
  readonly status: number;
  readonly body: ErrorEnvelope;
}

const CONFLICT = 409;
const ORCHESTRATOR_UNREACHABLE = 'orchestrator unreachable';

/** What a failed request gets, whatever failed: a handler, the transport or the HTTP framework. */
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

/** The specification prints one message for this code; the cause goes into the details. */
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
    // Not the address itself, which may hold the token of an invite.
    const route = request.restRoute?.value.path ?? request.routeOptions.url;
    logger.error({ err: error, requestId: request.id, route }, 'a request failed');
  }
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  tellWhenToRetry(error, reply);
  void reply.code(status).header('content-type', 'application/json').send(JSON.stringify(body));
  discardBody(request.raw);
}

/** Whoever refuses for a while says in the details for how long; the header follows from it, on every surface. */
export function tellWhenToRetry(error: unknown, reply: FastifyReply): void {
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

/** Of an error that the HTTP framework threw about the request; undefined when it is something else. */
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

/** Of what the framework refuses before anybody has looked at the request. */
function frameworkReason(error: Error): { readonly field: string; readonly reason: string } {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'FST_ERR_BAD_URL')
    return { field: 'path', reason: 'is not valid: it has an escape that stands for no text' };
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return { field: 'content-type', reason: 'is not one that is taken here' };
  return { field: 'request', reason: `is not valid: ${error.message}` };
}

/**
 * Reads the rest of a body and forgets it. Closing the connection at once would take the answer with it: a sender that is
 * still busy sees a broken connection, never the reason.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.complete) return;
  // The reader that was refused still listens for 'readable', and while it does, `resume` reads nothing. Without a listener for
  // 'data' the removal of the other one would end the flow again.
  request.removeAllListeners('readable');
  request.on('data', () => undefined);
  request.resume();
  const { socket } = request;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  timer.unref();
  request.once('end', () => clearTimeout(timer));
  request.once('close', () => clearTimeout(timer));
}
