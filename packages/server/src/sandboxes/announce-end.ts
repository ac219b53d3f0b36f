import type { SandboxReport } from '@svc/contract/orchestrator';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { getSandbox, noteAnnouncedEnd, type SandboxRecord } from '../store/sandboxes.ts';
import { recordSandboxEvent } from './sandbox-events.ts';

/** The engine computes the end anew for each report; two reports of the same end differ by less than this. */
const SAME_END_MS = 2000;

/** Whether the sandbox ends soon and its end was not announced yet. */
export function isUnannounced(
  { announcedEnd, observed }: Pick<SandboxRecord, 'announcedEnd' | 'observed'>,
  { ending = null }: Pick<SandboxReport, 'ending'>,
): boolean {
  if (ending === null || observed !== 'running') return false;
  return announcedEnd === null || Math.abs(Date.parse(ending.at) - Date.parse(announcedEnd)) > SAME_END_MS;
}

/** Records that a sandbox ends soon, once for each end, also when several servers see it. */
export async function announceEnd(db: Database, known: SandboxRecord, report: SandboxReport): Promise<void> {
  const { ending = null } = report;
  if (ending === null || !isUnannounced(known, report)) return;
  await inTransaction(db, async (transaction) => {
    await lockOrganization(transaction, known.organizationId);
    const record = await getSandbox(transaction, known.id);
    if (record === undefined || !isUnannounced(record, report)) return;
    await noteAnnouncedEnd(transaction, record.id, ending.at);
    const payload = { reason: ending.reason, ends_at: ending.at };
    await recordSandboxEvent(transaction, 'sandbox_ending', record, null, payload);
  });
}
