import { PlatformError } from '@svc/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { ownerOfCaller, type CallShares } from '../../access/call-shares.ts';
import type { Caller } from '../../access/caller.ts';
import { claimConnection } from '../http/connection-shares.ts';
import type { RateLimiter } from '../http/rate-limiter.ts';
import type { Authenticate } from '../../access/authenticate.ts';
import type { Dispatch } from '../../dispatch/dispatch.ts';
import { answerRpc, type RpcAnswer } from './answer.ts';
import { failure, RPC_CODE, rpcError } from '../http/rpc-envelope.ts';

export interface RpcTransportParts {
  readonly dispatch: Dispatch;
  readonly authenticate: Authenticate;
  readonly logger: Logger;
  /** Requests beyond a caller's share of those at work are refused instead of queued. */
  readonly calls: CallShares;
  readonly rateLimiter: RateLimiter | null;
}

const PATHS = [
  { path: '/api/v1/rpc', isLegacy: false },
  { path: '/legacy/api/v1/rpc', isLegacy: true },
] as const;

const decoder = new TextDecoder('utf-8', { fatal: true });

/** JSON-RPC 2.0 over HTTP. */
export function registerRpc(server: FastifyInstance, parts: RpcTransportParts): void {
  for (const { path, isLegacy } of PATHS) {
    server.post(path, async (request, reply) => await answer(parts, isLegacy, request, reply));
    server.route({
      method: ['GET', 'PUT', 'PATCH', 'DELETE'],
      url: path,
      handler: (_request, reply) => {
        reply.header('allow', 'POST');
        throw new PlatformError('method_not_allowed', `${path} takes POST only`);
      },
    });
  }
}

async function answer(
  parts: RpcTransportParts,
  isLegacy: boolean,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const body = parse(request.body);
  if (body === undefined) {
    return send(reply, { status: 400, body: failure(null, rpcError(RPC_CODE.parseError, 'Parse error')) });
  }
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort(new Error('the caller went away'));
  });
  const { dispatch, logger } = parts;
  const rpc = { dispatch, logger, isLegacy };
  const context = { requestId: request.id, signal: gone.signal, onProgress: ignoreProgress };
  return send(
    reply,
    await answerRpc(rpc, body.value, () => admit(parts, body.value, request, reply), context),
  );
}

/** Who calls, once there is a place for the call; each call of a batch counts. */
async function admit(
  { authenticate, calls, rateLimiter }: RpcTransportParts,
  body: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Caller> {
  const caller = await authenticate(request.headers);
  rateLimiter?.take(caller.namespace, reply, Array.isArray(body) ? body.length : 1);
  const owner = ownerOfCaller(caller);
  const leave = calls.enter(owner, (seconds) => void reply.header('retry-after', String(seconds)));
  reply.raw.once('close', leave);
  claimConnection(request.socket, owner);
  return caller;
}

/** @returns undefined when it is not JSON in UTF-8. */
function parse(body: unknown): { readonly value: unknown } | undefined {
  if (!(body instanceof Uint8Array)) return undefined;
  try {
    return { value: JSON.parse(decoder.decode(body)) };
  } catch {
    // Whatever is wrong with it, the answer is the same.
    return undefined;
  }
}

function send(reply: FastifyReply, { status, body }: RpcAnswer): FastifyReply {
  if (body === undefined) return reply.code(status).send();
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  return reply.code(status).header('content-type', 'application/json').send(JSON.stringify(body));
}

function ignoreProgress(): void {
  // JSON-RPC has no place for it.
}
