import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { hasBrokenOff, isCallerGone } from '../../http/caller-gone.ts';
import { describeRestFailure, discardBody, setRetryAfter } from '../../http/rest-failure.ts';

/** An answer of E2B's that has no error of ours behind it, in the words and with the status that its clients test for. */
export class E2bRefusal extends Error {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, message: string, more: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.body = { ...more, code: status, message };
  }
}

/** For what we do not offer: E2B's clients show the sentence. */
export function notOffered(sentence: string): E2bRefusal {
  return new E2bRefusal(400, sentence, { error_code: 'invalid_request' });
}

/** The answer of E2B's gateway when a sandbox does not run: clients look for `was not found`. */
export function sandboxGone(sandboxId: string): E2bRefusal {
  return new E2bRefusal(502, 'The sandbox was not found', { sandboxId });
}

/** Answers a failure outside of RPC in E2B's shape: `code` is the status, `error_code` one of our error table. */
export function sendE2bFailure(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): void {
  const { status, body } = describeE2bFailure(error, request.id);
  if (status === 500 && !isCallerGone(error) && !hasBrokenOff(request.raw))
    logger.error({ err: error, requestId: request.id, route: request.routeOptions.url }, 'a request failed');
  setRetryAfter(error, reply);
  // The framework closes the connection after a body that is too large, which would lose the answer.
  reply.removeHeader('connection');
  void reply.code(status).header('content-type', 'application/json').send(JSON.stringify(body));
  discardBody(request.raw);
}

export function describeE2bFailure(
  error: unknown,
  requestId: string,
): { readonly status: number; readonly body: Readonly<Record<string, unknown>> } {
  if (error instanceof E2bRefusal) return error;
  const { status, body } = describeRestFailure(error, requestId);
  const { code, message } = body.error;
  return { status, body: { code: status, message, error_code: code } };
}
