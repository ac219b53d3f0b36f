import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { getSandbox, listSandboxesIn, type EventCaller, type SandboxRecord } from '../store/sandboxes.ts';
import { requestRemoval } from './desired-state.ts';

const CALLER: EventCaller = {
  actor: { kind: 'system', code: 'retention', label: 'What is kept, and for how long' },
  requestId: null,
  sourceAddress: null,
};

/**
 * Removes sandboxes that failed before `before` and never ran: their disks were never written. `converge` is called for each, after it
 * was committed.
 */
export async function removeFailedCreates(
  db: Database,
  before: string,
  converge: (sandboxId: string) => void,
): Promise<void> {
  for (const { id, organizationId } of (await listSandboxesIn(db, ['failed'])).filter(isOld(before))) {
    const isRemoved = await inTransaction(db, async (transaction) => {
      await lockOrganization(transaction, organizationId);
      const record = await getSandbox(transaction, id);
      // It may have been started again meanwhile.
      if (record === undefined || !isOld(before)(record)) return false;
      await requestRemoval(transaction, record, CALLER);
      return true;
    });
    if (isRemoved) converge(id);
  }
}

function isOld(before: string): (record: SandboxRecord) => boolean {
  return ({ observed, startedAt, stateSince, removedAt }) =>
    observed === 'failed' && startedAt === null && removedAt === null && stateSince < before;
}
