import { sql, type Selectable } from 'kysely';
import type { Database, IdempotencyRow } from './database.ts';
import { prepareStatement, type StandIns } from './prepare-statement.ts';

/** How long the outcome of a first call is kept. */
export const REMEMBERED_MS = 24 * 60 * 60 * 1000;

/** In place of a lease: the call has ended, and its outcome is final. */
const OVER = '';
const FORGOTTEN_AT_ONCE = 500;
const LONG_AGO = new Date(0).toISOString();

/** Work that is done once, however many calls ask for it. */
export interface Work {
  /** The same for every call with this key and request, and unique to them: 32 hexadecimal digits. */
  readonly id: string;
  /** An earlier call began the work and did not finish; this call has to find out how far it got. */
  readonly isRepeat: boolean;
}

export interface IdempotencyClaim {
  /** The organization or user whose key it is. */
  readonly scope: string;
  readonly key: string;
  readonly owner: string;
}

/** The caller holds the key. */
export interface Claimed {
  /**
   * When the key was first used for this request. Identifies the work together with scope and key, also after a
   * takeover.
   */
  readonly since: string;
  /** An earlier call began the work and did not finish. */
  readonly isRepeat: boolean;
}

interface StoredOutcome {
  readonly status: number;
  readonly body: string;
}

/**
 * Claims the key, or returns the row of its first caller. Takes over a claim whose lease expired or was released, and
 * an outcome that is older than `REMEMBERED_MS`.
 */
export async function claimKey(
  db: Database,
  claim: IdempotencyClaim,
  fingerprint: string,
  leaseMs: number,
): Promise<Claimed | Selectable<IdempotencyRow>> {
  const now = Date.now();
  const createdAt = iso(now);
  const {
    rows: [inserted],
  } = await insertClaim(db, {
    ...claim,
    fingerprint,
    leasedUntil: iso(now + leaseMs),
    now: createdAt,
    oldest: iso(now - REMEMBERED_MS),
  });
  if (inserted !== undefined) {
    return { since: inserted.created_at, isRepeat: inserted.created_at !== createdAt };
  }
  const found = await findKey(db, claim);
  // The key was released between the two queries.
  return found ?? (await claimKey(db, claim, fingerprint, leaseMs));
}

const insertClaim = prepareStatement<
  Readonly<Record<'scope' | 'key' | 'owner' | 'fingerprint' | 'leasedUntil' | 'now' | 'oldest', string>>,
  { created_at: string }
>(
  ['scope', 'key', 'owner', 'fingerprint', 'leasedUntil', 'now', 'oldest'],
  (db, { scope, key, owner, fingerprint, leasedUntil, now, oldest }) => {
    const row = {
      scope,
      key,
      fingerprint,
      status: null,
      body: null,
      owner,
      leased_until: leasedUntil,
      created_at: now,
    };
    return db
      .insertInto('idempotency')
      .values(row)
      .onConflict((conflict) =>
        conflict
          .columns(['scope', 'key'])
          .doUpdateSet({
            ...row,
            created_at: sql<string>`case when idempotency.fingerprint = ${fingerprint} and idempotency.created_at >= ${oldest} then idempotency.created_at else ${now} end`,
          })
          .where((build) =>
            build.or([
              build.and([
                build('idempotency.status', 'is', null),
                build('idempotency.leased_until', '<', now),
              ]),
              build('idempotency.created_at', '<', oldest),
            ]),
          ),
      )
      .returning('created_at');
  },
);

export async function findKey(
  db: Database,
  { scope, key }: Pick<IdempotencyClaim, 'scope' | 'key'>,
): Promise<Selectable<IdempotencyRow> | undefined> {
  return await db
    .selectFrom('idempotency')
    .selectAll()
    .where('scope', '=', scope)
    .where('key', '=', key)
    .executeTakeFirst();
}

/**
 * Extends the lease: for `settledMs` once the outcome is settled, `claimedMs` before. A settled call can be resumed
 * sooner than an unsettled one can be repeated, because resuming it repeats no work.
 */
export async function extendLease(
  db: Database,
  claim: IdempotencyClaim,
  { claimedMs, settledMs }: { readonly claimedMs: number; readonly settledMs: number },
): Promise<void> {
  const now = Date.now();
  const until = sql<string>`case when status is null then ${iso(now + claimedMs)} else ${iso(now + settledMs)} end`;
  await mine(db, claim).set({ leased_until: until }).execute();
}

/**
 * Stores the outcome to return if the owner dies before it ends the call. Repeated calls wait up to `leaseMs` for the
 * end; null: the call ends with this.
 * @returns false when the lease expired and the key was taken over; another call may be doing the same work
 */
export async function settleKey(
  db: Database,
  claim: IdempotencyClaim,
  { status, body }: StoredOutcome,
  leaseMs: number | null,
): Promise<boolean> {
  const leasedUntil = leaseMs === null ? OVER : iso(Date.now() + leaseMs);
  const { numAffectedRows = 0n } = await updateOutcome(db, {
    ...claim,
    status,
    body,
    leasedUntil,
    fingerprint: null,
  });
  return numAffectedRows > 0n;
}

/** Takes a settled outcome back, because the work was undone. */
export async function unsettleKey(db: Database, claim: IdempotencyClaim, leaseMs: number): Promise<void> {
  await mine(db, claim)
    .set({ status: null, body: null, leased_until: iso(Date.now() + leaseMs) })
    .execute();
}

/** Ends the call; repeated calls get this outcome. */
export async function endKey(
  db: Database,
  claim: IdempotencyClaim,
  { status, body, fingerprint }: StoredOutcome & { readonly fingerprint?: string | undefined },
): Promise<void> {
  await updateOutcome(db, { ...claim, status, body, leasedUntil: OVER, fingerprint: fingerprint ?? null });
}

/** Updates the outcome of a claim that its owner still holds. */
const updateOutcome = prepareStatement<
  IdempotencyClaim & {
    readonly status: number;
    readonly body: string;
    readonly leasedUntil: string;
    /** Null: unchanged. */
    readonly fingerprint: string | null;
  }
>(
  ['scope', 'key', 'owner', 'status', 'body', 'leasedUntil', 'fingerprint'],
  (db, { scope, key, owner, status, body, leasedUntil, fingerprint }) =>
    mine(db, { scope, key, owner }).set({
      status,
      body,
      leased_until: leasedUntil,
      fingerprint: sql<string>`coalesce(${fingerprint}, fingerprint)`,
    }),
);

/**
 * Releases the key: the next call with it runs as the first, or resumes a settled call. The key stays recorded as
 * used.
 */
export async function releaseKey(db: Database, claim: IdempotencyClaim): Promise<void> {
  await mine(db, claim).set({ leased_until: LONG_AGO }).execute();
}

/** Releases the keys of all calls in progress. Only for a server that knows that no other server is alive. */
export async function releaseAllKeys(db: Database): Promise<void> {
  await db
    .updateTable('idempotency')
    .set({ leased_until: LONG_AGO })
    .where('leased_until', '<>', OVER)
    .where('leased_until', '>', LONG_AGO)
    .execute();
}

export function isClaimed(found: Claimed | Selectable<IdempotencyRow>): found is Claimed {
  return 'since' in found;
}

export function isOver({ leased_until: until }: Pick<Selectable<IdempotencyRow>, 'leased_until'>): boolean {
  return until === OVER;
}

/** Takes over a settled call whose owner is dead. @returns false when the owner is alive */
export async function resumeKey(db: Database, claim: IdempotencyClaim, leaseMs: number): Promise<boolean> {
  const now = Date.now();
  const { numUpdatedRows } = await db
    .updateTable('idempotency')
    .set({ owner: claim.owner, leased_until: iso(now + leaseMs) })
    .where('scope', '=', claim.scope)
    .where('key', '=', claim.key)
    .where('status', 'is not', null)
    .where('leased_until', '<>', OVER)
    .where('leased_until', '<', iso(now))
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Deletes expired rows in small batches, so that concurrent calls do not wait for long. */
export async function forgetOldKeys(db: Database): Promise<void> {
  for (;;) {
    const old = db
      .selectFrom('idempotency')
      .select(['scope', 'key'])
      .where('created_at', '<', iso(Date.now() - REMEMBERED_MS))
      .limit(FORGOTTEN_AT_ONCE);
    const { numDeletedRows } = await db
      .deleteFrom('idempotency')
      .where((build) => build(build.refTuple('scope', 'key'), 'in', old.$asTuple('scope', 'key')))
      .executeTakeFirstOrThrow();
    if (numDeletedRows < BigInt(FORGOTTEN_AT_ONCE)) return;
  }
}

function mine(
  db: Database,
  { scope, key, owner }: IdempotencyClaim | StandIns<Record<keyof IdempotencyClaim, string>>,
) {
  return db
    .updateTable('idempotency')
    .where('scope', '=', scope)
    .where('key', '=', key)
    .where('owner', '=', owner);
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
