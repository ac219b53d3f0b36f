import { PlatformError } from '@svc/contract/errors';
import type { FastifyInstance } from 'fastify';
import { ownerOfCaller } from '../../access/fair-limit.ts';
import { claimConnection } from '../http/connection-limit.ts';
import type { RateLimiter } from '../http/rate-limiter.ts';
import type { Authenticate } from '../../access/authenticate.ts';
import type { McpEndpoint, McpEndpointParts } from './mcp-endpoint.ts';

const PATH = '/mcp';

export interface McpTransportParts extends McpEndpointParts {
  readonly rateLimiter: RateLimiter | null;
  readonly authenticate: Authenticate;
}

/**
 * MCP over Streamable HTTP. The implementation is a large part of the server's code and is loaded on the first
 * authenticated request, so that the server starts quickly.
 * @returns how many sessions there are
 */
export function registerMcp(server: FastifyInstance, parts: McpTransportParts): { readonly size: number } {
  let endpoint: McpEndpoint | undefined;
  let isClosing = false;
  const load = async (): Promise<McpEndpoint> => {
    const { McpEndpoint } = await loadMcp();
    if (isClosing) throw new PlatformError('unavailable', 'the server is shutting down; try again later');
    endpoint ??= new McpEndpoint(parts);
    return endpoint;
  };
  server.route({
    method: ['POST', 'GET', 'DELETE'],
    url: PATH,
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      const caller = await parts.authenticate(request.headers);
      parts.rateLimiter?.take(caller.namespace, reply);
      claimConnection(request.socket, ownerOfCaller(caller));
      return await (endpoint ?? (await load())).serve(caller, request, reply);
    },
  });
  server.route({
    method: ['PUT', 'PATCH', 'HEAD'],
    url: PATH,
    handler: (_request, reply) => {
      reply.header('allow', 'POST, GET, DELETE');
      throw new PlatformError('method_not_allowed', `${PATH} takes POST, GET and DELETE only`);
    },
  });
  // Streams do not end before their client leaves, and would block the shutdown.
  server.addHook('preClose', async () => {
    isClosing = true;
    await endpoint?.close();
  });
  return {
    get size() {
      return endpoint?.size ?? 0;
    },
  };
}

/**
 * Imports from this file only: Node's cache of resolved paths is per importing file, so preloading has to happen here
 * too.
 */
export const loadMcp = () => import('./mcp-endpoint.ts');
