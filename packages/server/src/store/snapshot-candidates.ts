import type { PageRequest } from './page-request.ts';
import type { Database } from './database.ts';
import { selectSandboxes, toRecord, type SandboxRecord } from './sandboxes.ts';

/** Sandboxes that rest and are meant to last, newest first; one more than the page holds when there is another. */
export async function listSnapshotCandidates(
  db: Database,
  organizationId: string,
  { limit, after }: PageRequest,
): Promise<readonly SandboxRecord[]> {
  let query = selectSandboxes(db)
    .where('sandboxes.organization_id', '=', organizationId)
    .where('sandboxes.removed_at', 'is', null)
    .where('sandboxes.is_ephemeral', '=', 0)
    .where('sandboxes.observed', 'in', ['stopped', 'failed']);
  if (after !== null) {
    const [createdAt, id] = after.map(String) as [string, string];
    query = query.where((build) =>
      build(build.refTuple('sandboxes.created_at', 'sandboxes.id'), '<', build.tuple(createdAt, id)),
    );
  }
  const rows = await query
    .orderBy('sandboxes.created_at', 'desc')
    .orderBy('sandboxes.id', 'desc')
    .limit(limit + 1)
    .execute();
  return rows.map(toRecord);
}
