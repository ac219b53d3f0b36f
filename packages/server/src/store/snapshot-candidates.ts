import { newestFirst, type PageRequest } from './page-request.ts';
import type { Database } from './database.ts';
import { selectSandboxes, toRecord, type SandboxRecord } from './sandboxes.ts';

/** Stopped persistent sandboxes, newest first; one more than the page holds when there is another. */
export async function listSnapshotCandidates(
  db: Database,
  organizationId: string,
  page: PageRequest,
): Promise<readonly SandboxRecord[]> {
  const query = selectSandboxes(db)
    .where('sandboxes.organization_id', '=', organizationId)
    .where('sandboxes.removed_at', 'is', null)
    .where('sandboxes.is_ephemeral', '=', 0)
    .where('sandboxes.observed', 'in', ['stopped', 'failed']);
  const rows = await newestFirst(query, ['sandboxes.created_at', 'sandboxes.id'], page).execute();
  return rows.map(toRecord);
}
