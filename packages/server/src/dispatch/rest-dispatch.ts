import { PlatformError } from '@svc/contract';
import {
  EVENT_STREAM,
  REST_OPERATIONS,
  type RestOperation,
  type RestOperationName,
} from '@svc/contract/rest';
import type { RestCall, Change, RecordedEvent } from './rest-call.ts';
import type { RestHandlers } from './rest-handlers.ts';
import type { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import { inTransaction, untilCommitted } from '../store/in-transaction.ts';
import { appendEvent, type NewEvent } from '../store/events.ts';
import type { Work } from '../store/idempotency.ts';
import { lockLivingOrganization } from '../store/lock-organization.ts';
import { ANYONE, asPerson, authorize, type Authority } from '../access/authorize-rest.ts';
import { fingerprintOf, type Fingerprint } from './fingerprint.ts';
import {
  beginOnce,
  conflict,
  findOutcome,
  type FirstCall,
  type Outcome,
  type Remembered,
} from './idempotency.ts';
import type { Identify } from '../access/principal.ts';
import { recordRefusal } from './record-refusal.ts';

/** A request that was parsed and validated against the operation's schemas. */
export interface RestRequest {
  readonly input: {
    readonly params: unknown;
    readonly query: unknown;
    readonly headers: unknown;
    readonly body: unknown;
  };
  /** The organization in the path; undefined on paths without one. */
  readonly slug: string | undefined;
  readonly authorization: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** Identifies a repeated request: method, path, query and a JSON body, as text. */
  readonly identity: string;
  /** Digest of a streamed body, once it was read to its end. */
  readonly bodyDigest: (() => Promise<string>) | undefined;
  /** Set where the transport recognizes a repeated request without an idempotency key. */
  readonly work?: Work;
  readonly context: RequestContext;
}

export type RequestContext = Pick<
  RestCall,
  'requestId' | 'sourceAddress' | 'userAgent' | 'expectedVersion' | 'signal' | 'setHeader' | 'setSession'
> & {
  /** Where events are written in parallel to the work; aborts the signal when one cannot be written. */
  readonly noteBeside?: (event: NewEvent) => void;
};

export type RestAnswer = { readonly kind: 'output'; readonly output: unknown } | Replay;

/** The stored outcome of an earlier call with the same idempotency key. */
interface Replay {
  readonly kind: 'replay';
  readonly status: number;
  readonly body: string;
}

export type OnRestCallEnd = (end: {
  readonly operation: RestOperationName;
  readonly requestId: string;
  readonly organization: string;
  readonly durationMs: number;
  readonly failure: unknown;
}) => void;

export interface RestDispatchParts {
  readonly database: Database;
  readonly handlers: RestHandlers;
  readonly identify: Identify;
  readonly sealer: Sealer;
  /** The answer to a failure, so that it can be remembered like any other outcome. */
  /** Adds details for a caller of this organization to a failure. */
  readonly explain: (error: unknown, organizationId: string) => Promise<unknown>;
  readonly describeFailure: (error: unknown) => { readonly status: number; readonly body: string };
  readonly onCallEnd: OnRestCallEnd;
}

/** These may end the caller's own access: their keys belong to the caller, not to the organization. */
const MAY_END_ACCESS: ReadonlySet<RestOperationName> = new Set([
  'organizations.update',
  'organizations.remove',
  'members.update',
]);

/** From transport to handler: authenticates, authorizes, replays a stored outcome, or runs the handler. */
export class RestDispatch {
  readonly #parts: RestDispatchParts;

  constructor(parts: RestDispatchParts) {
    this.#parts = parts;
  }

  /**
   * Authenticates and authorizes the caller. The transport calls this before it reads a body, so that unauthenticated callers cannot
   * send one. A caller that lost its right by this very call may repeat it with the same key and gets the stored answer.
   */
  async admit(
    name: RestOperationName,
    request: Pick<RestRequest, 'slug' | 'authorization'> & { readonly isRepeatable: boolean },
  ): Promise<Authority> {
    const { database, identify } = this.#parts;
    if (isForAnyone(name)) return ANYONE;
    const principal = await identify(request.authorization);
    try {
      return await authorize(database, REST_OPERATIONS[name], request.slug, principal);
    } catch (error) {
      const mayBeRepetition = MAY_END_ACCESS.has(name) && request.isRepeatable;
      // A former member gets `forbidden`; the developer gets `org_not_found`.
      const isShutOut = PlatformError.is(error, 'forbidden') || PlatformError.is(error, 'org_not_found');
      if (!mayBeRepetition || !isShutOut) throw error;
      return { ...asPerson(principal, REST_OPERATIONS[name]), refusal: error };
    }
  }

  /** @throws PlatformError; anything else that is thrown is a bug. */
  async call(name: RestOperationName, request: RestRequest, authority: Authority): Promise<RestAnswer> {
    const startedAt = performance.now();
    const report = (failure: unknown) =>
      this.#parts.onCallEnd({
        operation: name,
        requestId: request.context.requestId,
        organization: authority.organization?.slug ?? '',
        durationMs: performance.now() - startedAt,
        failure,
      });
    try {
      const answer = await this.#once(name, request, authority);
      report(null);
      return answer;
    } catch (error) {
      report(error);
      await this.#noteRefusal(name, request, authority, error);
      throw error;
    }
  }

  /** The refused work was rolled back with its transaction; the attempt itself is recorded. */
  async #noteRefusal(
    operation: RestOperationName,
    { context }: RestRequest,
    { organization, actor }: Authority,
    error: unknown,
  ): Promise<void> {
    if (organization === null) return;
    const { requestId, sourceAddress } = context;
    const origin = { organizationId: organization.id, operation, actor, requestId, sourceAddress };
    await recordRefusal(this.#parts.database, error, origin);
  }

  async #once(name: RestOperationName, request: RestRequest, authority: Authority): Promise<RestAnswer> {
    const { idempotencyKey: key } = request;
    // Requests without a caller share one scope, so their outcomes must not be stored for one another.
    if (key === undefined || isForAnyone(name))
      return { kind: 'output', output: await this.#run(name, request, authority) };
    const { database, describeFailure, sealer } = this.#parts;
    const owned = { scope: scopeOf(name, authority), key };
    const print = fingerprintOf(sealer, request.identity);
    if (authority.refusal !== undefined) {
      const found = await findOutcome(database, owned, print);
      if (found === undefined) throw authority.refusal;
      return await replay(request, found, print, key);
    }
    const first = await beginOnce(database, owned, print, request.context.signal);
    if (!('end' in first))
      return await this.#repeat(name, request, authority, first, replay(request, first, print, key));
    if (first.admitted !== undefined) {
      const repeat = replay(request, first.admitted, print, key);
      return await this.#resume(name, request, authority, first, repeat);
    }
    try {
      const output = await this.#run(name, request, authority, first);
      const digest = await request.bodyDigest?.();
      const fingerprint = digest === undefined ? undefined : print.withBody(digest);
      await first.end(this.#outcomeOf(name, output), fingerprint);
      return { kind: 'output', output };
    } catch (error) {
      await first.end(describeFailure(error));
      throw error;
    }
  }

  /** Continues a call that did its work but did not finish: its server died, or its caller disconnected while it was held. */
  async #resume(
    name: RestOperationName,
    request: RestRequest,
    authority: Authority,
    first: FirstCall,
    repeat: Promise<Replay>,
  ): Promise<Replay> {
    try {
      const admitted = await repeat;
      const { wait_for: awaited } = request.input.query as { readonly wait_for?: string };
      const body =
        awaited === undefined
          ? admitted.body
          : toRemember(name, await this.#run(name, request, authority, first));
      await first.end({ status: admitted.status, body });
      return { ...admitted, body };
    } catch (error) {
      await first.letGo();
      throw error;
    }
  }

  /** Sends the stored answer; a stream is started anew, on the same work. */
  async #repeat(
    name: RestOperationName,
    request: RestRequest,
    authority: Authority,
    { work, status }: Remembered,
    replayed: Promise<Replay>,
  ): Promise<RestAnswer> {
    const answer = await replayed;
    if (!isStreamed(name) || status !== REST_OPERATIONS[name].status) return answer;
    request.context.setHeader('Idempotency-Replayed', 'true');
    return { kind: 'output', output: await this.#run(name, request, authority, { work }) };
  }

  #outcomeOf(name: RestOperationName, output: unknown): Outcome {
    const { status }: RestOperation = REST_OPERATIONS[name];
    return { status, body: isStreamed(name) ? NO_BODY : toRemember(name, output) };
  }

  async #run(
    name: RestOperationName,
    request: RestRequest,
    authority: Authority,
    first?: Begun,
  ): Promise<unknown> {
    const call = this.#createCall(name, request, authority, first);
    // Input and handler are of the same name; the compiler cannot follow that through a union of names.
    const handler = this.#parts.handlers[name] as (input: unknown, call: RestCall) => Promise<unknown>;
    try {
      return await handler(request.input, call);
    } catch (error) {
      const { organization } = authority;
      throw organization === null ? error : await this.#parts.explain(error, organization.id);
    }
  }

  #createCall(
    name: RestOperationName,
    { context, work }: RestRequest,
    authority: Authority,
    first: Begun | undefined,
  ): RestCall {
    const { organization, user, session, role, actor, isOperator } = authority;
    const commit = this.#commitOf(name, context, authority, first);
    return {
      requestId: context.requestId,
      sourceAddress: context.sourceAddress,
      userAgent: context.userAgent,
      expectedVersion: context.expectedVersion,
      setHeader: context.setHeader,
      setSession: context.setSession,
      // A getter: reading it creates the signal.
      get signal() {
        return context.signal;
      },
      user,
      session,
      role,
      actor,
      isOperator,
      work: first?.work ?? work ?? null,
      admitted: first?.admitted === undefined ? null : JSON.parse(first.admitted.body),
      get organization() {
        return requireOrganization(organization);
      },
      commit,
      note: (event) => this.#note(event, context, authority, commit),
    };
  }

  async #note(
    event: RecordedEvent,
    { noteBeside, requestId, sourceAddress }: RequestContext,
    { organization, actor }: Authority,
    commit: RestCall['commit'],
  ): Promise<void> {
    if (noteBeside === undefined)
      return await untilCommitted((whenCommitted) =>
        commit(({ record }) => record(event), undefined, whenCommitted),
      );
    const organizationId = requireOrganization(organization).id;
    return noteBeside({ ...event, organizationId, actor, requestId, sourceAddress });
  }

  #commitOf(
    name: RestOperationName,
    { requestId, sourceAddress }: RequestContext,
    { organization, actor }: Authority,
    first: Begun | undefined,
  ): RestCall['commit'] {
    const append = (transaction: Database) => (event: RecordedEvent, organizationId?: string) =>
      appendEvent(transaction, {
        ...event,
        organizationId: organizationId ?? requireOrganization(organization).id,
        actor,
        requestId,
        sourceAddress,
      });
    const isLast = isStreamed(name);
    return (work, respond, whenCommitted) =>
      inTransaction(
        this.#parts.database,
        async (transaction) => {
          if (organization !== null) await lockLivingOrganization(transaction, organization.id);
          const change: Change = {
            db: transaction,
            record: append(transaction),
            undo: async () => await first?.unsettle?.(transaction),
          };
          const result = await work(change);
          // Of a stream only the fact that it began is stored.
          const body = isLast ? NO_BODY : respond && toRemember(name, respond(result));
          if (body !== undefined)
            await first?.settle?.(transaction, { status: REST_OPERATIONS[name].status, body }, isLast);
          return result;
        },
        (result) => {
          if (isLast && first !== undefined) first.hasEnded = true;
          whenCommitted?.(result);
        },
      );
  }
}

const NO_BODY = 'null';

/** A call with a key; for one that is over only its work is known. */
type Begun = Pick<FirstCall, 'work'> & Partial<FirstCall>;

function isForAnyone(name: RestOperationName): boolean {
  const { audience }: RestOperation = REST_OPERATIONS[name];
  return audience === 'anyone';
}

function isStreamed(name: RestOperationName): boolean {
  const { output }: RestOperation = REST_OPERATIONS[name];
  return output === EVENT_STREAM;
}

/** Secrets are shown once and never stored, not for a repetition either. */
function toRemember(name: RestOperationName, output: unknown): string {
  const { secretField }: RestOperation = REST_OPERATIONS[name];
  if (secretField === undefined) return JSON.stringify(output);
  return JSON.stringify({ ...(output as object), [secretField]: null });
}

function requireOrganization<T>(organization: T | null): T {
  if (organization === null) throw new Error('this operation has no organization');
  return organization;
}

/** Scoped to the organization, so that each of its callers gets the same answer when it repeats a call. */
function scopeOf(name: RestOperationName, { organization, user }: Authority): string {
  const own = user?.id ?? '';
  return MAY_END_ACCESS.has(name) ? own : (organization?.id ?? own);
}

async function replay(
  request: RestRequest,
  { status, body, fingerprint }: Remembered,
  print: Fingerprint,
  key: string,
): Promise<Replay> {
  const digest = await request.bodyDigest?.();
  if (!print.isSameBody(fingerprint, digest)) throw conflict(key);
  return { kind: 'replay', status, body };
}

export function badField(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field} ${reason}`, { details: { field, reason } });
}
