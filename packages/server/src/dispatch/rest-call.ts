import type { EventKind, Role } from '@svc/contract/rest';
import type { Work } from '../store/idempotency.ts';
import type { Database } from '../store/database.ts';
import type { Actor } from '../store/events.ts';
import type { OrganizationRecord } from '../store/organizations.ts';
import type { SessionRecord } from '../store/sessions.ts';
import type { UserRecord } from '../store/users.ts';

/** What a handler of the control plane gets besides its input. */
export interface RestCall {
  /** The organization of the key or of the path. Reading it in an operation without one is a bug and throws. */
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
  /** The version that the caller has seen, from `If-Match`; null: the caller accepts every version. */
  readonly expectedVersion: number | null;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
  readonly setHeader: (name: string, value: string) => void;
  /** Signs the caller's browser in until `expiresAt`; null: signs it out. */
  readonly setSession: (session: { readonly token: string; readonly expiresAt: string } | null) => void;
  /**
   * Null, except in a call that can be held with `wait_for` and whose first attempt made its change but was cut off before its answer:
   * then the answer that `commit` stored. Only the waiting is left to do.
   */
  readonly admitted: unknown;
  /** Null without an idempotency key. Handlers do their work outside of the database once under this name. */
  readonly work: Work | null;
  /**
   * Runs `work` in one transaction together with the audit events that it records. Changes of one organization are serialized, so what
   * `work` reads stays true until the end of the transaction. `respond` gives the answer; with an idempotency key it is stored in the
   * same transaction, so that a call that is killed afterwards is not done twice. `whenCommitted` may run before fsync.
   */
  readonly commit: <Result>(
    work: (change: Change) => Promise<Result>,
    respond?: (result: Result) => unknown,
    whenCommitted?: (result: Result) => void,
  ) => Promise<Result>;
  /**
   * Records an event whose subject would not survive a power failure either: resolves when it is visible to other connections, without
   * fsync, or, on a connection that is held open, while it is being written.
   */
  readonly note: (event: RecordedEvent) => Promise<void>;
}

export interface Change {
  readonly db: Database;
  /** Records an event of the caller's organization, or of another one that the change makes or belongs to. */
  readonly record: (event: RecordedEvent, organizationId?: string) => Promise<void>;
  /** Marks the call's earlier change as undone in this transaction, so that a repetition does the work again. */
  readonly undo: () => Promise<void>;
}

export type RecordedEvent = EventKind & { readonly payload: Readonly<Record<string, unknown>> };
