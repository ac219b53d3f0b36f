import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';

/**
 * Which credential an operation takes.
 * - `anyone`: none is asked for.
 * - `key`: an API key, which names the organization; the path is below `/v1`.
 * - `user`: a personal access token or a session; below `/v1`, and where the path begins with `/orgs/{slug}` the user
 *   must be a member there.
 * - `both`: below `/v1` with an API key, and once more below `/v1/orgs/{slug}` for its members.
 */
export type Audience = 'anyone' | 'key' | 'user' | 'both';

/** What a member may do, weakest first. Each may do what those before it may. */
export const ROLES = ['member', 'admin', 'owner'] as const;
export type Role = (typeof ROLES)[number];

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Raw bytes instead of JSON, streamed. */
export const BYTES = 'bytes';
/** Server-sent events. */
export const EVENT_STREAM = 'event-stream';

/** One operation of the control plane, with everything that routes, validation and documents derive from. */
export interface RestOperation {
  readonly summary: string;
  /** Groups operations in documents: the resource in plural. */
  readonly tag: string;
  readonly method: HttpMethod;
  /** Below `/v1`; parameters in braces. */
  readonly path: `/${string}`;
  readonly audience: Audience;
  /** The least role of a user. For API keys only the audience counts. */
  readonly role: Role;
  /** An operation on the user, not on an organization, that sessions limited to one organization may call too. */
  readonly takesLimitedSession?: true;
  readonly params: TObject;
  readonly query: TObject;
  /** Request headers beside the ones that every operation takes; names in lower case, as they are sent. */
  readonly headers: TObject;
  /** Null: a body is ignored. An absent JSON body counts as an empty object. */
  readonly body: TSchema | typeof BYTES | null;
  /** Maximum size of the JSON body, where it is more than the default. */
  readonly maxBodyBytes?: number;
  readonly output: TSchema | typeof BYTES | typeof EVENT_STREAM;
  readonly status: 200 | 202;
  /** A field of the output that is shown once: a repetition of the call with the same idempotency key gets null there. */
  readonly secretField?: string;
  /** Its error codes, without those of every operation: bad request, bad credential, a bug. */
  readonly errors: readonly ErrorCode[];
}

/** Whether an operation supports `If-Match`, so that it changes only the version that its caller has seen. */
export function takesVersion({ errors }: Pick<RestOperation, 'errors'>): boolean {
  return errors.includes('precondition_failed');
}

export type ByteSource = AsyncIterable<Uint8Array>;

export interface RestInput<O extends RestOperation> {
  readonly params: Static<O['params']>;
  readonly query: Static<O['query']>;
  readonly headers: Static<O['headers']>;
  readonly body: BodyOf<O['body']>;
}
// Every value is a schema to the compiler, so the other kinds are asked for first.
type BodyOf<B> = B extends null
  ? undefined
  : B extends typeof BYTES
    ? ByteSource
    : B extends TSchema
      ? Static<B>
      : never;

/** Of server-sent events: `id` is what a client hands back to resume. */
export interface ServerEvent {
  readonly event: string;
  readonly data: unknown;
  readonly id?: string;
}

export type RestOutput<O extends RestOperation> = O['output'] extends typeof BYTES
  ? ByteSource
  : O['output'] extends typeof EVENT_STREAM
    ? AsyncIterable<ServerEvent>
    : O['output'] extends TSchema
      ? Static<O['output']>
      : never;
