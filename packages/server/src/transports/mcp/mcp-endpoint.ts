import { isIP } from 'node:net';
import { parseRequestJson } from '@svc/contract/bounded-json';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../access/caller.ts';
import { failure, RPC_CODE, rpcError } from '../http/rpc-envelope.ts';
import { toAuthInfo, type CallerInfo } from './caller-info.ts';
import { checkMessages } from './check-messages.ts';
import type { McpServerParts } from './create-mcp-server.ts';
import { DEFAULT_SESSION_LIMITS, McpSessions, type McpSession, type SessionLimits } from './mcp-sessions.ts';
import { versionOf } from './protocol-version.ts';

const SESSION_NOT_FOUND = -32_001;
const EVENT_STREAM = 'text/event-stream';

export interface McpEndpointParts extends McpServerParts {
  readonly sessionLimits?: SessionLimits;
}

/** Answers the requests of MCP clients, and holds their sessions. */
export class McpEndpoint {
  readonly #sessions: McpSessions;

  constructor(parts: McpEndpointParts) {
    this.#sessions = new McpSessions(parts, parts.sessionLimits ?? DEFAULT_SESSION_LIMITS);
  }

  get size(): number {
    return this.#sessions.size;
  }

  async serve(caller: Caller, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const body = request.method === 'POST' ? parse(request.body) : { value: undefined };
    if (body === undefined) return refuse(reply, 400, RPC_CODE.parseError, 'Parse error');
    const sessionId = request.headers['mcp-session-id'];
    const known = typeof sessionId === 'string' ? this.#sessions.find(sessionId, caller) : undefined;
    if (typeof sessionId === 'string' && known === undefined)
      return refuse(reply, 404, SESSION_NOT_FOUND, 'Session not found');
    const invalid = checkMessages(body.value);
    if (invalid !== undefined) return sendJson(reply, 200, invalid);
    const session = known ?? (await this.#sessions.open(caller, body.value));
    reply.raw.once('close', this.#sessions.use(session));
    const response = await session.transport.handleRequest(toWebRequest(request, session), {
      parsedBody: body.value,
      authInfo: toAuthInfo({ caller, ...originOf(request) }),
    });
    void reply.send(response);
    // The first message of a stream may take long, and the client waits for the head.
    if (response.headers.get('content-type') === EVENT_STREAM) reply.raw.flushHeaders();
    return reply;
  }

  async close(): Promise<void> {
    await this.#sessions.close();
  }
}

function originOf(request: FastifyRequest): Omit<CallerInfo, 'caller'> {
  const address = request.socket.remoteAddress ?? '';
  return {
    requestId: request.id,
    sourceAddress: isIP(address) === 0 ? null : address,
    userAgent: request.headers['user-agent'] ?? '',
  };
}

/** Without body and path: the body was read already, and the SDK ignores the path. */
function toWebRequest({ method, headers }: FastifyRequest, session: McpSession): Request {
  const copied = new Headers();
  for (const name of ['accept', 'content-type', 'last-event-id', 'mcp-session-id']) {
    const value = headers[name];
    if (typeof value === 'string') copied.set(name, value);
  }
  const version = versionOf(headers['mcp-protocol-version']?.toString(), session.protocolVersion);
  if (version !== undefined) copied.set('mcp-protocol-version', version);
  return new Request('http://localhost/mcp', { method, headers: copied });
}

function refuse(reply: FastifyReply, status: number, code: number, message: string): FastifyReply {
  return sendJson(reply, status, failure(null, rpcError(code, message)));
}

function sendJson(reply: FastifyReply, status: number, body: unknown): FastifyReply {
  return reply.code(status).header('content-type', 'application/json').send(JSON.stringify(body));
}

/** @returns undefined when it is not JSON in UTF-8. */
function parse(body: unknown): { readonly value: unknown } | undefined {
  if (!(body instanceof Uint8Array)) return undefined;
  try {
    return { value: parseRequestJson(body) };
  } catch {
    // All syntax errors get the same answer.
    return undefined;
  }
}
