import type { Selectable } from 'kysely';
import type { Database, IdempotencyRow } from './database.ts';

/** How long a first outcome is remembered. */
export const REMEMBERED_MS = 24 * 60 * 60 * 1000;

export interface IdempotencyClaim {
  /** The organization or user whose key it is. */
  readonly scope: string;
  readonly key: string;
  readonly owner: string;
}

/**
 * Makes the caller the first of this key, or says who was. A claim whose owner let its lease run out, and an outcome that
 * is too old to be remembered, give way.
 */
export async function claimKey(
  db: Database,
  claim: IdempotencyClaim,
  fingerprint: string,
  leaseMs: number,
): Promise<'claimed' | Selectable<IdempotencyRow>> {
  const now = Date.now();
  const row = {
    scope: claim.scope,
    key: claim.key,
    fingerprint,
    status: null,
    body: null,
    owner: claim.owner,
    leased_until: iso(now + leaseMs),
    created_at: iso(now),
  };
  const inserted = await db
    .insertInto('idempotency')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['scope', 'key'])
        .doUpdateSet(row)
        .where((build) =>
          build.or([
            build.and([
              build('idempotency.status', 'is', null),
              build('idempotency.leased_until', '<', iso(now)),
            ]),
            build('idempotency.created_at', '<', iso(now - REMEMBERED_MS)),
          ]),
        ),
    )
    .returning('owner')
    .executeTakeFirst();
  if (inserted !== undefined) return 'claimed';
  const found = await findKey(db, claim);
  // It was given up between the two queries.
  return found ?? (await claimKey(db, claim, fingerprint, leaseMs));
}

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

export async function extendLease(db: Database, claim: IdempotencyClaim, leaseMs: number): Promise<void> {
  await mine(db, claim, { leased_until: iso(Date.now() + leaseMs) });
}

/** Remembers the outcome. Repeating it replaces what was remembered. */
export async function settleKey(
  db: Database,
  claim: IdempotencyClaim,
  outcome: { readonly status: number; readonly body: string; readonly fingerprint?: string },
): Promise<void> {
  await mine(db, claim, outcome);
}

/** So that the next call with this key is the first again. An outcome that is settled stays. */
export async function releaseKey(db: Database, claim: IdempotencyClaim): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('scope', '=', claim.scope)
    .where('key', '=', claim.key)
    .where('owner', '=', claim.owner)
    .where('status', 'is', null)
    .execute();
}

export async function forgetOldKeys(db: Database): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('created_at', '<', iso(Date.now() - REMEMBERED_MS))
    .execute();
}

async function mine(
  db: Database,
  { scope, key, owner }: IdempotencyClaim,
  change: Partial<Pick<IdempotencyRow, 'leased_until' | 'status' | 'body' | 'fingerprint'>>,
): Promise<void> {
  await db
    .updateTable('idempotency')
    .set(change)
    .where('scope', '=', scope)
    .where('key', '=', key)
    .where('owner', '=', owner)
    .execute();
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
