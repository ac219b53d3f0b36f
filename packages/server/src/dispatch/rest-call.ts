import type { EventKind, Role } from '@svc/contract/rest';
import type { Work } from '../store/idempotency.ts';
import type { Database } from '../store/database.ts';
import type { Actor } from '../store/events.ts';
import type { OrganizationRecord } from '../store/organizations.ts';
import type { SessionRecord } from '../store/sessions.ts';
import type { UserRecord } from '../store/users.ts';

/** What a handler of the control plane gets beside its input. */
export interface RestCall {
  /** The one that the key or the path names. Reading it in an operation without one is a bug and throws. */
  readonly organization: OrganizationRecord;
  /** Null when an API key calls. */
  readonly user: UserRecord | null;
  /** Null: the user comes with a token, or there is none. */
  readonly session: SessionRecord | null;
  /** Of the user in the organization; an API key has `owner`. */
  readonly role: Role;
  readonly actor: Actor;
  /** The caller owns this server and its host: development mode, or a key for every namespace. */
  readonly isOperator: boolean;
  readonly requestId: string;
  readonly sourceAddress: string | null;
  readonly userAgent: string;
  /** The version that the caller has seen, from `If-Match`; null when any will do. */
  readonly expectedVersion: number | null;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
  readonly setHeader: (name: string, value: string) => void;
  /** Signs the caller's browser in, until then; null: out. */
  readonly setSession: (session: { readonly token: string; readonly expiresAt: string } | null) => void;
  /**
   * Null, but where a call that can be held with `wait_for` did its change and did not live to be answered: what `commit`
   * noted as its answer. Nothing but the waiting is left to do.
   */
  readonly admitted: unknown;
  /** Null without an idempotency key. What a handler does outside of the database it does under this name, once. */
  readonly work: Work | null;
  /**
   * Runs `work` in one transaction together with the audit events that it records. Changes of one organization come one
   * after the other, so what `work` reads stays true until its end. `respond` gives the answer; with an idempotency key it
   * is stored in the same transaction, so that a call that was killed afterwards is not done twice. `whenCommitted` need not wait
   * until the disk has it.
   */
  readonly commit: <Result>(
    work: (change: Change) => Promise<Result>,
    respond?: (result: Result) => unknown,
    whenCommitted?: (result: Result) => void,
  ) => Promise<Result>;
  /**
   * Records an event of something that would end with the power, too: goes on when others can see it, without waiting for the disk,
   * or, on a connection that is held open, while it is being written.
   */
  readonly note: (event: RecordedEvent) => Promise<void>;
}

export interface Change {
  readonly db: Database;
  /** Notes an event of the caller's organization, or of another one that the change makes or belongs to. */
  readonly record: (event: RecordedEvent, organizationId?: string) => Promise<void>;
  /** This change undoes what the call did before: whoever repeats the call does it anew. */
  readonly undo: () => Promise<void>;
}

export type RecordedEvent = EventKind & { readonly payload: Readonly<Record<string, unknown>> };
