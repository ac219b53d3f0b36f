import { randomUUID } from 'node:crypto';
import type { Database } from './database.ts';
import { appendEvent, type NewEvent } from './events.ts';
import { inTransaction } from './in-transaction.ts';

const LEASE_MS = 60_000;

/**
 * Records a file change before it is made. The caller renews the lease while it changes the file, and ends it
 * together with the event. `recordLostChanges` finds changes whose caller has died.
 */
export async function announceFileChange(db: Database, event: NewEvent): Promise<string> {
  const id = randomUUID();
  await db
    .insertInto('file_changes')
    .values({ id, event: JSON.stringify(event), leased_until: leaseEnd() })
    .execute();
  return id;
}

export async function extendFileChange(db: Database, id: string): Promise<void> {
  await db.updateTable('file_changes').set({ leased_until: leaseEnd() }).where('id', '=', id).execute();
}

/** Call it in the transaction of the event, or without a transaction when the file was not changed. */
export async function endFileChange(db: Database, id: string): Promise<void> {
  await db.deleteFrom('file_changes').where('id', '=', id).execute();
}

/** How often to renew a lease, and to look for expired ones. */
export const FILE_CHANGE_CHECK_MS = LEASE_MS / 3;

/** Writes the events of changes whose server died, once each, with an unknown outcome. */
export async function recordLostChanges(database: Database): Promise<void> {
  const lost = await database
    .selectFrom('file_changes')
    .select('id')
    .where('leased_until', '<', new Date().toISOString())
    .execute();
  for (const { id } of lost) await inTransaction(database, (transaction) => recordLost(transaction, id));
}

async function recordLost(transaction: Database, id: string): Promise<void> {
  const taken = await transaction
    .deleteFrom('file_changes')
    .where('id', '=', id)
    .where('leased_until', '<', new Date().toISOString())
    .returning('event')
    .executeTakeFirst();
  // Another server has taken it already.
  if (taken !== undefined)
    await appendEvent(transaction, withUnknownEnd(JSON.parse(taken.event) as NewEvent));
}

/** The event of a change whose outcome is unknown. */
export function withUnknownEnd<Event extends { readonly payload: Readonly<Record<string, unknown>> }>(
  event: Event,
): Event {
  return { ...event, payload: { ...event.payload, outcome: 'unknown' } };
}

function leaseEnd(): string {
  return new Date(Date.now() + LEASE_MS).toISOString();
}
