import type { Audience, HttpMethod } from './rest-operation.ts';
import type { RestOperationName } from './rest-operations.ts';
import { REST_ROUTES } from './rest-routes.ts';

/** The data that a client needs to call an operation, without the schemas, which take long to load. */
export interface RestRoute {
  readonly method: HttpMethod;
  /** Below `/v1`; parameters in braces. */
  readonly path: string;
  readonly audience: Audience;
  readonly body: 'none' | 'json' | 'bytes';
  readonly output: 'json' | 'bytes' | 'event-stream';
}

export function routeOf(name: RestOperationName): RestRoute {
  const [method, path = '', audience, body, output] = REST_ROUTES[name].split(' ');
  // The table is generated from the operations, whose types these are.
  return { method, path, audience, body, output } as RestRoute;
}
