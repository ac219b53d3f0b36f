import { appendEvent } from './events.ts';
import type { Database } from './database.ts';
import { inTransaction } from './in-transaction.ts';
import { lockOrganization } from './lock-organization.ts';

/** Rows that one transaction removes, so that nobody waits long for it. */
const BATCH = 500;
const ACTOR = { kind: 'system', code: 'retention', label: 'svc' } as const;
export const PRUNED_EVENT = 'events_pruned';

/**
 * Removes events from before a time, the oldest first. The organization remembers the last one that went, and an event in the
 * chain says so too, so that what is left can still be followed from there, and nobody can cut off more unseen.
 */
export async function pruneEvents(db: Database, before: string, signal: AbortSignal): Promise<void> {
  const organizations = await db.selectFrom('organizations').select('id').execute();
  for (const { id } of organizations) {
    while (!signal.aborted && (await pruneBatch(db, id, before)) === BATCH);
  }
}

/** @returns how many went */
async function pruneBatch(db: Database, organizationId: string, before: string): Promise<number> {
  return await inTransaction(db, async (transaction) => {
    await lockOrganization(transaction, organizationId);
    const old = await transaction
      .selectFrom('events')
      .select(['sequence', 'hash', 'event_type'])
      .where('organization_id', '=', organizationId)
      .where('timestamp', '<', before)
      .orderBy('sequence')
      .limit(BATCH)
      .execute();
    const last = old.at(-1);
    // Removing one note only to leave another would go on for ever.
    if (last === undefined || old.every(({ event_type: type }) => type === PRUNED_EVENT)) return 0;
    const sequence = Number(last.sequence);
    await transaction
      .deleteFrom('events')
      .where('organization_id', '=', organizationId)
      .where('sequence', '<=', sequence)
      .execute();
    await transaction
      .updateTable('organizations')
      .set({ pruned_sequence: sequence, pruned_hash: last.hash })
      .where('id', '=', organizationId)
      .execute();
    await appendEvent(transaction, {
      organizationId,
      type: PRUNED_EVENT,
      category: 'event',
      actor: ACTOR,
      payload: { until_sequence: sequence, hash: last.hash, before },
      requestId: null,
      sourceAddress: null,
    });
    return old.length;
  });
}
