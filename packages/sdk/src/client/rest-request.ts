import type { RestRoute } from '@svc/contract/routes';
import { toBytes, streamOf, type Content } from './byte-content.ts';
import { SvcError } from '../svc-error.ts';

/** The parts of a call of any operation. */
export interface RequestParts {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

export interface PreparedRequest {
  /** Below the address of the server. */
  readonly path: string;
  readonly method: RestRoute['method'];
  readonly headers: Readonly<Record<string, string>>;
  /** Made anew for each attempt. */
  readonly body: (() => { readonly body: NonNullable<RequestInit['body']>; readonly duplex?: 'half' }) | null;
  /** False when the body can be sent only once. */
  readonly isRepeatable: boolean;
}

const VERSION_PREFIX = '/v1';
const ORGANIZATION_PREFIX = '/orgs/{slug}';

/**
 * Builds the request of an operation. `organization` is the slug for user credentials; null for API keys.
 * @throws SvcError `invalid_request` when the operation is one for members and no organization is known
 */
export function prepareRequest(
  route: RestRoute,
  parts: RequestParts,
  organization: string | null,
): PreparedRequest {
  const isForMembers = route.path.startsWith(ORGANIZATION_PREFIX);
  if (isForMembers && organization === null) {
    throw new SvcError('invalid_request', 'This takes the slug of an organization; give the client one');
  }
  const goesToMembers = route.audience === 'both' && organization !== null;
  const template = goesToMembers ? `${ORGANIZATION_PREFIX}${route.path}` : route.path;
  const path = fill(template, { ...parts.params, ...(organization === null ? {} : { slug: organization }) });
  const query = encodeQuery(parts.query ?? {});
  return {
    path: `${VERSION_PREFIX}${path}${query}`,
    method: route.method,
    headers: headersOf(route, parts),
    ...bodyOf(route, parts.body),
  };
}

function fill(template: string, params: Readonly<Record<string, unknown>>): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    if (typeof value !== 'string' || value === '') {
      throw new SvcError('invalid_request', `${name} must not be empty`, { details: { field: name } });
    }
    // `.` and `..` would be taken for steps in the path, even when they are escaped.
    if (value === '.' || value === '..') {
      throw new SvcError('invalid_request', `${name} cannot be '${value}'`, { details: { field: name } });
    }
    return encodeURIComponent(value);
  });
}

function encodeQuery(query: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  if (given.length === 0) return '';
  return `?${new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)]))).toString()}`;
}

function headersOf(route: RestRoute, { headers = {} }: RequestParts): Record<string, string> {
  const given = Object.entries(headers).filter(([, value]) => value !== undefined);
  const sent: Record<string, string> = Object.fromEntries(given.map(([name, value]) => [name, `${value}`]));
  if (route.body === 'json') sent['content-type'] = 'application/json';
  sent['accept'] = route.output === 'event-stream' ? 'text/event-stream' : '*/*';
  return sent;
}

function bodyOf(route: RestRoute, body: unknown): Pick<PreparedRequest, 'body' | 'isRepeatable'> {
  if (route.body === 'none') return { body: null, isRepeatable: true };
  if (route.body === 'json') {
    const text = JSON.stringify(body ?? {});
    return { body: () => ({ body: text }), isRepeatable: true };
  }
  // Browsers send a stream over HTTP/2 alone, and a file of any size as it is.
  if (body instanceof Blob) return { body: () => ({ body }), isRepeatable: true };
  // The types of the calls allow nothing else.
  const content = toBytes(body as Content);
  if (content instanceof Uint8Array) {
    return { body: () => ({ body: content as Uint8Array<ArrayBuffer> }), isRepeatable: true };
  }
  return { body: () => ({ body: streamOf(content), duplex: 'half' }), isRepeatable: false };
}
