import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract';
import type { Database } from '../store/database.ts';
import { claimKey, extendLease, releaseKey, settleKey, type IdempotencyClaim } from '../store/idempotency.ts';

const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const POLL_MS = 50;
const MAX_WAIT_MS = 120_000;
/** Outcomes that a repetition may change are not remembered. */
const FIRST_UNREMEMBERED_STATUS = 500;
const TOO_MANY_REQUESTS = 429;

/** An answer as it is remembered: the body is JSON text. */
export interface Outcome {
  readonly status: number;
  readonly body: string;
}

/** The first call of a key: it alone does the work. */
export interface FirstCall {
  /** Remembers the answer in the transaction of the change itself. */
  settle(transaction: Database, outcome: Outcome): Promise<void>;
  /** The call is over. `fingerprint` replaces the first one, where it is known only after the body was read. */
  end(outcome: Outcome, fingerprint?: string): Promise<void>;
}

/**
 * Lets the work of one key happen once. Others with the same key wait for it and get its outcome.
 * @throws PlatformError `idempotency_conflict` when the key was used for something else
 */
export async function beginOnce(
  database: Database,
  key: { readonly scope: string; readonly key: string },
  fingerprint: string,
  signal: AbortSignal,
): Promise<FirstCall | (Outcome & { readonly fingerprint: string })> {
  const claim: IdempotencyClaim = { ...key, owner: randomUUID() };
  const deadline = Date.now() + MAX_WAIT_MS;
  for (;;) {
    const found = await claimKey(database, claim, fingerprint, LEASE_MS);
    if (found === 'claimed') return firstCall(database, claim);
    if (!isSameRequest(found.fingerprint, fingerprint)) throw conflict(key.key);
    if (found.status !== null) {
      return { status: found.status, body: found.body ?? 'null', fingerprint: found.fingerprint };
    }
    if (Date.now() > deadline) {
      throw new PlatformError(
        'unavailable',
        'the first call with this Idempotency-Key is still under way; try again',
      );
    }
    await delay(POLL_MS, undefined, { signal });
  }
}

/** A fingerprint is `<request>` or `<request>:<body>`; the body's part is compared when both have one. */
function isSameRequest(stored: string, given: string): boolean {
  const [request, body] = stored.split(':');
  const [givenRequest, givenBody] = given.split(':');
  if (request !== givenRequest) return false;
  return body === undefined || givenBody === undefined || body === givenBody;
}

export function conflict(key: string): PlatformError {
  return new PlatformError(
    'idempotency_conflict',
    `Idempotency-Key '${key}' was used for another request; use a new key`,
    { details: { field: 'Idempotency-Key' } },
  );
}

function firstCall(database: Database, claim: IdempotencyClaim): FirstCall {
  const renewal = setInterval(() => {
    // A renewal that fails costs at most the exclusiveness of a call that lasts longer than its lease.
    extendLease(database, claim, LEASE_MS).catch(() => undefined);
  }, RENEW_MS);
  renewal.unref();
  return {
    settle: (transaction, outcome) => settleKey(transaction, claim, outcome),
    end: async (outcome, fingerprint) => {
      clearInterval(renewal);
      const isFinal = outcome.status < FIRST_UNREMEMBERED_STATUS && outcome.status !== TOO_MANY_REQUESTS;
      if (isFinal) {
        await settleKey(database, claim, {
          ...outcome,
          ...(fingerprint === undefined ? {} : { fingerprint }),
        });
      } else await releaseKey(database, claim);
    },
  };
}
