import { appendEvent } from './events.ts';
import type { Database } from './database.ts';
import { inTransaction } from './in-transaction.ts';
import { lockOrganization } from './lock-organization.ts';

/** Rows per transaction, so that other transactions do not wait for long. */
const BATCH = 500;
const ACTOR = { kind: 'system', code: 'retention', label: 'svc' } as const;
export const PRUNED_EVENT = 'events_pruned';

/**
 * Removes events from before a time, oldest first. The organization stores the sequence and hash of the last removed
 * event, and an event in the chain records them, so that the rest can still be verified and further removals are
 * detected.
 */
export async function pruneEvents(db: Database, before: string, signal: AbortSignal): Promise<void> {
  const organizations = await db.selectFrom('organizations').select('id').execute();
  for (const { id } of organizations) {
    while (!signal.aborted && (await pruneBatch(db, id, before)) === BATCH);
  }
}

/** @returns the number of removed events */
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
    // Pruning events are not pruned alone: each batch would add another one, without end.
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
