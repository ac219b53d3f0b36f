import { PlatformError, type OperationOutput } from '@svc/contract';
import { parseRequestJson } from '@svc/contract/bounded-json';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { ownerOfCaller, type FairLimit } from '../../access/fair-limit.ts';
import type { Caller } from '../../access/caller.ts';
import { claimConnection } from '../http/connection-limit.ts';
import type { RateLimiter } from '../http/rate-limiter.ts';
import type { Authenticate } from '../../access/authenticate.ts';
import type { CallContext, Dispatch } from '../../dispatch/dispatch.ts';
import {
  failure,
  readRequest,
  RPC_CODE,
  rpcError,
  success,
  type RpcRequest,
  type RpcResponse,
} from '../http/rpc-envelope.ts';
import { describeFailure, describeRefusal } from './describe-failure.ts';
import { isRpcMethod, type RpcMethod } from './methods.ts';

export interface RpcTransportParts {
  readonly dispatch: Dispatch;
  readonly authenticate: Authenticate;
  readonly logger: Logger;
  /** Limits concurrent requests per caller; further ones are refused, not queued. */
  readonly calls: FairLimit;
  readonly rateLimiter: RateLimiter | null;
}

const PATHS = [
  { path: '/api/v1/rpc', isLegacy: false },
  { path: '/legacy/api/v1/rpc', isLegacy: true },
] as const;

const MAX_BATCH = 100;

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

/** Authenticates the caller and takes its places; each call of a batch takes one. */
async function admit(
  { authenticate, calls, rateLimiter }: RpcTransportParts,
  body: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Caller> {
  const caller = await authenticate(request.headers);
  rateLimiter?.take(caller.namespace, reply, Array.isArray(body) ? body.length : 1);
  const owner = ownerOfCaller(caller);
  const leave = calls.enter(owner);
  reply.raw.once('close', leave);
  claimConnection(request.socket, owner);
  return caller;
}

interface RpcParts {
  readonly dispatch: Dispatch;
  readonly logger: Logger;
  /** Results with output as lines, like the original server. */
  readonly isLegacy: boolean;
}

interface RpcAnswer {
  readonly status: number;
  /** Undefined: no answer, because the batch has only notifications. */
  readonly body: RpcResponse | readonly RpcResponse[] | undefined;
}

/** Answers a JSON body. `authenticate` is called once, and only if there is a valid request. */
async function answerRpc(
  parts: RpcParts,
  body: unknown,
  authenticate: () => Promise<Caller>,
  context: CallContext,
): Promise<RpcAnswer> {
  if (Array.isArray(body)) return await answerBatch(parts, body, authenticate, context);
  const read = readRequest(body);
  if ('error' in read) return { status: 200, body: failure(read.id, read.error) };
  const { request } = read;
  const caller = await identify(authenticate);
  if ('status' in caller) return { status: caller.status, body: failure(request.id, caller.error) };
  return await answerOne(parts, request, caller, context);
}

/** Runs the calls in sequence: a batch may start a sandbox, use it and stop it. */
async function answerBatch(
  parts: RpcParts,
  body: readonly unknown[],
  authenticate: () => Promise<Caller>,
  context: CallContext,
): Promise<RpcAnswer> {
  const problem =
    body.length === 0 ? 'a batch holds at least one call' : `a batch holds at most ${MAX_BATCH} calls`;
  if (body.length === 0 || body.length > MAX_BATCH) {
    const error = rpcError(RPC_CODE.invalidRequest, 'Invalid Request', { field: 'batch', reason: problem });
    return { status: 200, body: failure(null, error) };
  }
  const caller = await identify(authenticate);
  if ('status' in caller) return { status: caller.status, body: failure(null, caller.error) };
  const responses: RpcResponse[] = [];
  for (const value of body) {
    const read = readRequest(value);
    if ('error' in read) responses.push(failure(read.id, read.error));
    else {
      const answer = await answerOne(parts, read.request, caller, context);
      // In a batch, a request without an id is a notification.
      if (read.request.id !== undefined) responses.push(answer.body);
    }
  }
  return responses.length === 0 ? { status: 204, body: undefined } : { status: 200, body: responses };
}

async function identify(authenticate: () => Promise<Caller>) {
  try {
    return await authenticate();
  } catch (error) {
    const refusal = PlatformError.is(error) ? describeRefusal(error) : undefined;
    if (refusal === undefined) throw error;
    return refusal;
  }
}

async function answerOne(
  { dispatch, logger, isLegacy }: RpcParts,
  { method, params, id }: RpcRequest,
  caller: Caller,
  context: CallContext,
): Promise<{ readonly status: number; readonly body: RpcResponse }> {
  if (!isRpcMethod(method)) {
    const error = rpcError(RPC_CODE.methodNotFound, `Method not found: ${method}`, { method });
    return { status: 200, body: failure(id, error) };
  }
  try {
    const result = await dispatch.call(method, params, caller, context);
    return { status: 200, body: success(id, isLegacy ? toLegacyShape(method, result) : result) };
  } catch (error) {
    if (!PlatformError.is(error) && !context.signal.aborted) {
      logger.error({ err: error, method, requestId: context.requestId }, 'a call met a bug');
    }
    const { status, error: shown } = describeFailure(method, error, context.requestId);
    return { status, body: failure(id, shown) };
  }
}

/**
 * @returns undefined when it is not JSON in UTF-8. @throws PlatformError `invalid_request` when it has too many parts
 */
function parse(body: unknown): { readonly value: unknown } | undefined {
  if (!(body instanceof Uint8Array)) return undefined;
  try {
    return { value: parseRequestJson(body) };
  } catch (error) {
    if (PlatformError.is(error)) throw error;
    // All syntax errors get the same answer.
    return undefined;
  }
}

function send(reply: FastifyReply, { status, body }: RpcAnswer): FastifyReply {
  if (body === undefined) return reply.code(status).send();
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  return reply.code(status).header('content-type', 'application/json').send(JSON.stringify(body));
}

function ignoreProgress(): void {
  // JSON-RPC has no way to report progress.
}

interface LegacyLine {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

/** The result in the format of the original server: output as lines, and no `error`. */
function toLegacyShape(method: RpcMethod, result: unknown): unknown {
  if (method !== 'sandbox.repl.run' && method !== 'sandbox.command.run') return result;
  // The handler of the method has just returned it.
  const run = result as OperationOutput<typeof method>;
  const { output, error, ...rest } = run;
  const lines = [...toLines('stdout', output), ...toLines('stderr', error)];
  if (!('has_error' in rest)) return { ...rest, output: lines };
  const { has_error: _, ...code } = rest;
  return { ...code, output: lines };
}

function toLines(stream: LegacyLine['stream'], text: string): readonly LegacyLine[] {
  if (text === '') return [];
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  return lines.map((line) => ({ stream, text: line }));
}
