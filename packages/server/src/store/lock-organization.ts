import { PlatformError } from '@svc/contract';
import { sql } from 'kysely';
import type { Database } from './database.ts';
import { prepareStatement, type StandIns } from './prepare-statement.ts';

/**
 * Locks the organization until the end of the transaction, so that its changes are serialized. Call it first: what
 * the transaction reads afterwards stays true until its end. SQLite has one writer at a time; PostgreSQL waits here
 * for other transactions that change the same organization.
 */
export async function lockOrganization(transaction: Database, organizationId: string): Promise<void> {
  await lock(transaction, { organizationId });
}

const lock = prepareStatement(
  ['organizationId'],
  (db, { organizationId }: StandIns<{ organizationId: string }>) =>
    db
      .updateTable('organizations')
      .set({ event_sequence: sql<number>`event_sequence` })
      .where('id', '=', organizationId),
);

/**
 * Like `lockOrganization`, before objects are added to the organization. @throws PlatformError `org_not_found` when
 * it was deleted meanwhile
 */
export async function lockLivingOrganization(
  transaction: Database,
  organizationId: string,
): Promise<{ readonly id: string; readonly slug: string }> {
  const {
    rows: [row],
  } = await lockLiving(transaction, { organizationId });
  if (row === undefined) throw new PlatformError('org_not_found', 'The organization was deleted');
  return row;
}

const lockLiving = prepareStatement(
  ['organizationId'],
  (db, { organizationId }: StandIns<{ organizationId: string }>) =>
    db
      .updateTable('organizations')
      .set({ event_sequence: sql<number>`event_sequence` })
      .where('id', '=', organizationId)
      .where('deleted_at', 'is', null)
      .returning(['id', 'slug']),
);
