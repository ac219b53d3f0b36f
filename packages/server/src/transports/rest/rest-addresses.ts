import { PlatformError } from '@svc/contract';
import {
  BYTES,
  EVENT_STREAM,
  pathsOf,
  REST_OPERATIONS,
  type RestOperation,
  type RestOperationName,
} from '@svc/contract/rest';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { REST_PREFIX } from '../http/rest-failure.ts';
import { RouteTree, type FoundRoute } from './route-tree.ts';

/** The operations of one path, by method. */
interface Address {
  readonly path: string;
  readonly operations: Map<string, RestOperationName>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The route of the control plane; null: none. */
    restRoute?: FoundRoute<Address> | null;
  }
}

/** Finds the operation of a request. Stores the result with the request. */
export class RestAddresses {
  readonly #routes = listRoutes();

  /** @throws PlatformError when the path does not exist, or does not take the method */
  operationOf(request: FastifyRequest, reply: FastifyReply): RestOperationName {
    const route = this.#find(request);
    if (route === null) throw nothingAt(request);
    const { operations } = route.value;
    const name = operations.get(request.method);
    if (name !== undefined) return name;
    const allowed = [...operations.keys()].filter((method) => method !== 'HEAD').join(', ');
    reply.header('allow', allowed);
    throw new PlatformError('method_not_allowed', `${request.url.split('?')[0]} takes ${allowed} only`);
  }

  isBodyStreamed(request: FastifyRequest): boolean {
    const name = this.#find(request)?.value.operations.get(request.method);
    return name !== undefined && REST_OPERATIONS[name].body === BYTES;
  }

  #find(request: FastifyRequest): FoundRoute<Address> | null {
    const [path = ''] = request.url.slice(REST_PREFIX.length).split(/[?#]/, 1);
    request.restRoute ??= this.#routes.find(path) ?? null;
    return request.restRoute;
  }
}

export function nothingAt(request: FastifyRequest): PlatformError {
  return new PlatformError('not_found', `There is no ${request.method} ${request.url.split('?')[0]}`);
}

function listRoutes(): RouteTree<Address> {
  const routes = new RouteTree<Address>();
  for (const [name, operation] of Object.entries(REST_OPERATIONS) as [RestOperationName, RestOperation][]) {
    for (const { path } of pathsOf(operation)) {
      const { operations } = routes.add(path, { path, operations: new Map() });
      operations.set(operation.method, name);
      if (operation.method === 'GET' && !isAnswerStreamed(operation)) operations.set('HEAD', name);
    }
  }
  return routes;
}

/**
 * HEAD is not offered for streamed answers: the stream would be read to its end and discarded, and one that follows
 * has none.
 */
function isAnswerStreamed({ output }: RestOperation): boolean {
  return output === BYTES || output === EVENT_STREAM;
}
