import { requestStop } from './desired-state.ts';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { appendEvent } from '../store/events.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { getSandbox, type EventCaller } from '../store/sandboxes.ts';
import { findOverruns, type Overrun } from '../accounting/find-overruns.ts';

const CALLER: EventCaller = {
  actor: { kind: 'system', code: 'quota', label: 'Limits of the organization' },
  requestId: null,
  sourceAddress: null,
};

/** Requests the stop of every run that exceeds a limit. `converge` is called for each after commit. */
export async function enforceLimits(db: Database, converge: (sandboxId: string) => void): Promise<void> {
  for (const overrun of await findOverruns(db)) {
    if (await end(db, overrun)) converge(overrun.sandboxId);
  }
}

/** @returns false when the sandbox was already stopped or removed. */
async function end(db: Database, overrun: Overrun): Promise<boolean> {
  const { sandboxId, organizationId, limit, value, maximum, message } = overrun;
  return await inTransaction(db, async (transaction) => {
    await lockOrganization(transaction, organizationId);
    const record = await getSandbox(transaction, sandboxId);
    if (record === undefined || record.desired === 'stopped' || record.desired === 'removed') return false;
    await appendEvent(transaction, {
      ...CALLER,
      organizationId,
      type: 'quota_exceeded',
      category: 'quota',
      payload: { sandbox_id: sandboxId, name: record.name, limit, value, maximum, message },
    });
    await requestStop(transaction, record, CALLER);
    return true;
  });
}
