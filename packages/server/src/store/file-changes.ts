import { randomUUID } from 'node:crypto';
import type { Database } from './database.ts';
import { appendEvent, type NewEvent } from './events.ts';
import { inTransaction } from './in-transaction.ts';

const LEASE_MS = 60_000;

/**
 * Writes down that a file is about to be changed, before it is. The caller renews the lease while
 * it changes the file, and ends it together with the event. `tellLostChanges` finds changes whose caller has died.
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

/** In the transaction of the event, or without one when nothing was changed. */
export async function endFileChange(db: Database, id: string): Promise<void> {
  await db.deleteFrom('file_changes').where('id', '=', id).execute();
}

/** How often to keep a lease, and to look for those that nobody kept. */
export const FILE_CHANGE_CHECK_MS = LEASE_MS / 3;

/** Notes the events of changes whose server is gone, each once: they may have happened. */
export async function tellLostChanges(database: Database): Promise<void> {
  const lost = await database
    .selectFrom('file_changes')
    .select('id')
    .where('leased_until', '<', new Date().toISOString())
    .execute();
  for (const { id } of lost) await inTransaction(database, (transaction) => tellLost(transaction, id));
}

async function tellLost(transaction: Database, id: string): Promise<void> {
  const taken = await transaction
    .deleteFrom('file_changes')
    .where('id', '=', id)
    .where('leased_until', '<', new Date().toISOString())
    .returning('event')
    .executeTakeFirst();
  // Somebody else was faster.
  if (taken !== undefined)
    await appendEvent(transaction, withUnknownEnd(JSON.parse(taken.event) as NewEvent));
}

/** The event of a change of which nobody can say whether it happened. */
export function withUnknownEnd<Event extends { readonly payload: Readonly<Record<string, unknown>> }>(
  event: Event,
): Event {
  return { ...event, payload: { ...event.payload, outcome: 'unknown' } };
}

function leaseEnd(): string {
  return new Date(Date.now() + LEASE_MS).toISOString();
}
