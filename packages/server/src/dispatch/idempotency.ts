import { createHash, randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import type { Database } from '../store/database.ts';
import {
  claimKey,
  endKey,
  extendLease,
  findKey,
  isClaimed,
  isOver,
  releaseKey,
  resumeKey,
  settleKey,
  unsettleKey,
  type IdempotencyClaim,
  type Work,
} from '../store/idempotency.ts';
import type { Fingerprint } from './fingerprint.ts';
import { wakeOf } from './wake.ts';

/** A server whose lease is not renewed for this long is considered dead. */
const LEASE_MS = 10_000;
/** Lease of a call that has done its work and has not sent its answer. */
const SETTLED_LEASE_MS = 6000;
const RENEW_MS = 2000;
/** Waiters in this process are woken; polling covers calls of other servers and of servers that were killed. */
const POLL_MS = 500;
const MAX_WAIT_MS = 120_000;
/** Outcomes that a repetition may change are not stored. */
const FIRST_UNREMEMBERED_STATUS = 500;
const TOO_MANY_REQUESTS = 429;

/** A stored answer: the body is JSON text. */
export interface Outcome {
  readonly status: number;
  readonly body: string;
}

export type Remembered = Outcome & { readonly fingerprint: string; readonly work: Work };

/** The first call with a key: only this one does the work. */
export interface FirstCall {
  readonly work: Work;
  /** The answer of an earlier call that did the work but did not finish; only the remaining steps are to be done. */
  readonly admitted: Remembered | undefined;
  /**
   * Stores the answer in the transaction of the change itself. It can still be replaced until `end`. With `isLast` it is final, so that
   * `end` has nothing to write once `hasEnded` says that the transaction was committed.
   * @throws PlatformError `unavailable` when another call has begun to do the work, so that this one rolls back
   */
  settle(transaction: Database, outcome: Outcome, isLast?: boolean): Promise<void>;
  hasEnded: boolean;
  /** The change was undone, in this transaction. */
  unsettle(transaction: Database): Promise<void>;
  /** Ends the call. `fingerprint` replaces the first one, where it is known only after the body was read. */
  end(outcome: Outcome, fingerprint?: string): Promise<void>;
  /** Releases the key without an outcome; the next call with it continues where this one stopped. */
  letGo(): Promise<void>;
}

/**
 * Lets the work of one key happen once. Parallel calls with the same key wait for it and get its outcome.
 * @throws PlatformError `idempotency_conflict` when the key was used for a different request
 */
export async function beginOnce(
  database: Database,
  key: { readonly scope: string; readonly key: string },
  fingerprint: Pick<Fingerprint, 'text' | 'isSame'>,
  signal: AbortSignal,
): Promise<FirstCall | Remembered> {
  const claim: IdempotencyClaim = { ...key, owner: randomUUID() };
  const deadline = Date.now() + MAX_WAIT_MS;
  const wake = wakeOf(database);
  for (;;) {
    // Listens before it looks, so that it cannot miss an end in between.
    using end = wake.listen(nameOf(key));
    const found = await claimKey(database, claim, fingerprint.text, LEASE_MS);
    const become = (work: Work, admitted?: Remembered) =>
      firstCall(database, claim, { work, admitted }, () => wake.wake(nameOf(key)));
    if (isClaimed(found)) return become({ id: workId(key, found.since), isRepeat: found.isRepeat });
    if (!fingerprint.isSame(found.fingerprint)) throw conflict(key.key);
    if (found.status !== null) {
      const outcome = remembered(found.status, key, found);
      if (isOver(found)) return outcome;
      if (await resumeKey(database, claim, SETTLED_LEASE_MS)) return become(outcome.work, outcome);
    }
    if (Date.now() > deadline) {
      throw new PlatformError(
        'unavailable',
        'the first call with this Idempotency-Key is still under way; try again',
      );
    }
    await end.happens(POLL_MS, signal);
  }
}

/**
 * The stored outcome of the key, for a caller that has lost the right to run the call; no work is done. Undefined when there is no
 * outcome yet.
 * @throws PlatformError `idempotency_conflict`
 */
export async function findOutcome(
  database: Database,
  key: { readonly scope: string; readonly key: string },
  fingerprint: Fingerprint,
): Promise<Remembered | undefined> {
  const found = await findKey(database, key);
  if (found === undefined || found.status === null) return undefined;
  if (!fingerprint.isSame(found.fingerprint)) throw conflict(key.key);
  return remembered(found.status, key, found);
}

function remembered(
  status: number,
  key: { readonly scope: string; readonly key: string },
  row: { readonly body: string | null; readonly fingerprint: string; readonly created_at: string },
): Remembered {
  const work = { id: workId(key, row.created_at), isRepeat: true };
  return { status, body: row.body ?? 'null', fingerprint: row.fingerprint, work };
}

function workId({ scope, key }: { readonly scope: string; readonly key: string }, since: string): string {
  return createHash('sha256')
    .update(JSON.stringify([scope, key, since]))
    .digest('hex')
    .slice(0, 32);
}

function nameOf({ scope, key }: { readonly scope: string; readonly key: string }): string {
  return `${scope} ${key}`;
}

export function conflict(key: string): PlatformError {
  return new PlatformError(
    'idempotency_conflict',
    `Idempotency-Key '${key}' was used for another request; use a new key`,
    { details: { field: 'Idempotency-Key' } },
  );
}

function firstCall(
  database: Database,
  claim: IdempotencyClaim,
  { work, admitted }: { readonly work: Work; readonly admitted: Remembered | undefined },
  wake: () => void,
): FirstCall {
  const renewal = setInterval(() => {
    // If a renewal fails, the worst case is a second call running beside one that lasts longer than its lease.
    extendLease(database, claim, { claimedMs: LEASE_MS, settledMs: SETTLED_LEASE_MS }).catch(() => undefined);
  }, RENEW_MS);
  renewal.unref();
  const finish = async (work: () => Promise<void>) => {
    clearInterval(renewal);
    try {
      await work();
    } finally {
      wake();
    }
  };
  const letGo = () => finish(() => releaseKey(database, claim));
  return {
    work,
    admitted,
    hasEnded: false,
    settle: async (transaction, outcome, isLast = false) => {
      if (await settleKey(transaction, claim, outcome, isLast ? null : SETTLED_LEASE_MS)) return;
      throw new PlatformError(
        'unavailable',
        'this took so long that another call with its key began; try again',
      );
    },
    unsettle: (transaction) => unsettleKey(transaction, claim, LEASE_MS),
    async end(outcome, fingerprint) {
      const isFinal = outcome.status < FIRST_UNREMEMBERED_STATUS && outcome.status !== TOO_MANY_REQUESTS;
      if (isFinal && this.hasEnded && fingerprint === undefined) await finish(() => Promise.resolve());
      else if (isFinal) await finish(() => endKey(database, claim, { ...outcome, fingerprint }));
      else await letGo();
    },
    letGo,
  };
}
