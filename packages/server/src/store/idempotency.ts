import { sql, type Selectable } from 'kysely';
import type { Database, IdempotencyRow } from './database.ts';
import { prepareStatement, type StandIns } from './prepare-statement.ts';

/** How long a first outcome is remembered. */
export const REMEMBERED_MS = 24 * 60 * 60 * 1000;

/** In place of a lease: the call is over, and its outcome stays as it is. */
const OVER = '';
const FORGOTTEN_AT_ONCE = 500;
const LONG_AGO = new Date(0).toISOString();

/** What is to be done once, however often it is asked for. */
export interface Work {
  /** The same for every call that asks for this work under its key, and for no other: 32 hexadecimal digits. */
  readonly id: string;
  /** It was begun before, and how far it came is for whoever does it to find out. */
  readonly isRepeat: boolean;
}

export interface IdempotencyClaim {
  /** The organization or user whose key it is. */
  readonly scope: string;
  readonly key: string;
  readonly owner: string;
}

/** The key is the caller's now. */
export interface Claimed {
  /** When the key was first used for this request: with scope and key it names the work, also when others take it over. */
  readonly since: string;
  /** Somebody began the work before and did not come to its end. */
  readonly isRepeat: boolean;
}

interface StoredOutcome {
  readonly status: number;
  readonly body: string;
}

/**
 * Makes the caller the first of this key, or says who was. A claim whose owner let its lease run out or gave up, and an
 * outcome that is too old to be remembered, give way.
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
  // It was given up between the two queries.
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

/** A call that has settled its key can be resumed sooner than one that has not can be done again: nothing is done twice. */
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
 * What is answered if nobody lives to end the call. For `leaseMs` others wait for its end; null: it is over with this.
 * @returns false when the key is not the caller's any more: it let its lease run out, and others may be at the same work
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

/** What was settled was undone. */
export async function unsettleKey(db: Database, claim: IdempotencyClaim, leaseMs: number): Promise<void> {
  await mine(db, claim)
    .set({ status: null, body: null, leased_until: iso(Date.now() + leaseMs) })
    .execute();
}

/** The call is over; whoever repeats it gets this outcome. */
export async function endKey(
  db: Database,
  claim: IdempotencyClaim,
  { status, body, fingerprint }: StoredOutcome & { readonly fingerprint?: string | undefined },
): Promise<void> {
  await updateOutcome(db, { ...claim, status, body, leasedUntil: OVER, fingerprint: fingerprint ?? null });
}

/** Of a claim that is still its owner's. */
const updateOutcome = prepareStatement<
  IdempotencyClaim & {
    readonly status: number;
    readonly body: string;
    readonly leasedUntil: string;
    /** Null: as it is. */
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

/** The next call with this key is the first again, or resumes what was settled. That it was used is remembered. */
export async function releaseKey(db: Database, claim: IdempotencyClaim): Promise<void> {
  await mine(db, claim).set({ leased_until: LONG_AGO }).execute();
}

/** As `releaseKey` for every call under way. Only for a server that knows that whoever made them is gone. */
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

/** Makes the caller the one who ends a call that was settled by somebody who is gone. @returns false: nobody is gone */
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

/** In small parts, so that nobody who uses a key waits long. */
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
