import { randomUUID } from 'node:crypto';
import type { Selectable } from 'kysely';
import { newestFirst, type PageRequest } from './page-request.ts';
import type { Database, SnapshotOperationRow, SnapshotRow } from './database.ts';

export interface SnapshotRecord {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly sandboxName: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
}

export async function findSnapshot(
  db: Database,
  organizationId: string,
  by: { readonly id: string } | { readonly name: string },
): Promise<SnapshotRecord | undefined> {
  const [column, value] = 'id' in by ? (['id', by.id.toLowerCase()] as const) : (['name', by.name] as const);
  const row = await db
    .selectFrom('snapshots')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where(column, '=', value)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return row === undefined ? undefined : toSnapshot(row);
}

/** Lists one more than the page holds when there is another. */
export async function listSnapshots(
  db: Database,
  organizationId: string,
  page: PageRequest,
): Promise<readonly SnapshotRecord[]> {
  const query = db
    .selectFrom('snapshots')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null);
  const rows = await newestFirst(query, ['created_at', 'id'], page).execute();
  return rows.map(toSnapshot);
}

export async function insertSnapshot(db: Database, snapshot: SnapshotRecord): Promise<void> {
  await db
    .insertInto('snapshots')
    .values({
      id: snapshot.id,
      organization_id: snapshot.organizationId,
      name: snapshot.name,
      sandbox_id: snapshot.sandboxId,
      sandbox_name: snapshot.sandboxName,
      digest: snapshot.digest,
      size_bytes: snapshot.sizeBytes,
      manifest: JSON.stringify(snapshot.manifest),
      labels: JSON.stringify(snapshot.labels),
      created_at: snapshot.createdAt,
      removed_at: null,
    })
    .execute();
}

/** @returns whether there was one */
export async function removeSnapshot(db: Database, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('snapshots')
    .set({ removed_at: new Date().toISOString() })
    .where('id', '=', id)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return Number(numUpdatedRows) > 0;
}

/** The ids among these whose snapshot was removed here, or failed. */
export async function findRemovedSnapshots(db: Database, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const removed = await db
    .selectFrom('snapshots')
    .select('id')
    .where('id', 'in', [...ids])
    .where('removed_at', 'is not', null)
    .execute();
  const failed = await db
    .selectFrom('snapshot_operations')
    .select('snapshot_id as id')
    .where('snapshot_id', 'in', [...ids])
    .where('status', '=', 'failed')
    .execute();
  return [...removed, ...failed].map(({ id }) => id);
}

export type SnapshotOperationStatus = 'queued' | 'in_progress' | 'succeeded' | 'failed';

export interface SnapshotOperationRecord {
  readonly id: string;
  readonly organizationId: string;
  /** The id of the future snapshot. */
  readonly snapshotId: string;
  readonly snapshotName: string;
  readonly sandboxId: string;
  readonly sandboxName: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether it replaces a snapshot of the same name. */
  readonly shouldReplace: boolean;
  readonly status: SnapshotOperationStatus;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly completedAt: string | null;
}

export async function insertSnapshotOperation(
  db: Database,
  operation: Pick<
    SnapshotOperationRecord,
    'organizationId' | 'snapshotName' | 'sandboxId' | 'sandboxName' | 'labels' | 'shouldReplace'
  >,
): Promise<SnapshotOperationRecord> {
  const now = new Date().toISOString();
  const row = {
    id: randomUUID(),
    organization_id: operation.organizationId,
    snapshot_id: randomUUID(),
    snapshot_name: operation.snapshotName,
    sandbox_id: operation.sandboxId,
    sandbox_name: operation.sandboxName,
    request: JSON.stringify({ labels: operation.labels, shouldReplace: operation.shouldReplace }),
    status: 'queued',
    error: null,
    created_at: now,
    updated_at: now,
    completed_at: null,
  };
  await db.insertInto('snapshot_operations').values(row).execute();
  return toOperation({ ...row, claimed_by: null, claimed_until: null });
}

/** Number of unfinished operations of an organization. */
export async function countPendingOperations(db: Database, organizationId: string): Promise<number> {
  const row = await db
    .selectFrom('snapshot_operations')
    .select((build) => build.fn.countAll<number | string>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('completed_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function findSnapshotOperation(
  db: Database,
  organizationId: string,
  id: string,
): Promise<SnapshotOperationRecord | undefined> {
  const row = await db
    .selectFrom('snapshot_operations')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id.toLowerCase())
    .executeTakeFirst();
  return row === undefined ? undefined : toOperation(row);
}

export async function listSnapshotOperations(
  db: Database,
  organizationId: string,
  page: PageRequest,
  shouldHideSucceeded: boolean,
): Promise<readonly SnapshotOperationRecord[]> {
  let query = db.selectFrom('snapshot_operations').selectAll().where('organization_id', '=', organizationId);
  if (shouldHideSucceeded) query = query.where('status', '!=', 'succeeded');
  const rows = await newestFirst(query, ['created_at', 'id'], page).execute();
  return rows.map(toOperation);
}

/** Claims the oldest operation that no server has claimed; undefined when there is none. */
export async function claimSnapshotOperation(
  db: Database,
  owner: string,
  leaseMs: number,
): Promise<SnapshotOperationRecord | undefined> {
  const now = new Date();
  const free = await db
    .selectFrom('snapshot_operations')
    .select('id')
    .where('status', 'in', ['queued', 'in_progress'])
    .where((build) =>
      build.or([build('claimed_until', 'is', null), build('claimed_until', '<', now.toISOString())]),
    )
    .orderBy('created_at')
    .executeTakeFirst();
  if (free === undefined) return undefined;
  const row = await db
    .updateTable('snapshot_operations')
    .set({
      status: 'in_progress',
      claimed_by: owner,
      claimed_until: new Date(now.getTime() + leaseMs).toISOString(),
      updated_at: now.toISOString(),
    })
    .where('id', '=', free.id)
    .where('status', 'in', ['queued', 'in_progress'])
    // Another server may have claimed it meanwhile.
    .where((build) =>
      build.or([build('claimed_until', 'is', null), build('claimed_until', '<', now.toISOString())]),
    )
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? undefined : toOperation(row);
}

/** Call it before the lease expires. */
export async function extendSnapshotClaim(
  db: Database,
  id: string,
  owner: string,
  leaseMs: number,
): Promise<void> {
  await db
    .updateTable('snapshot_operations')
    .set({ claimed_until: new Date(Date.now() + leaseMs).toISOString() })
    .where('id', '=', id)
    .where('claimed_by', '=', owner)
    .execute();
}

export async function endSnapshotOperation(
  db: Database,
  id: string,
  error: SnapshotOperationRecord['error'],
): Promise<void> {
  const now = new Date().toISOString();
  await db
    .updateTable('snapshot_operations')
    .set({
      status: error === null ? 'succeeded' : 'failed',
      error: error === null ? null : JSON.stringify(error),
      claimed_by: null,
      claimed_until: null,
      updated_at: now,
      completed_at: now,
    })
    .where('id', '=', id)
    .execute();
}

/** Releases the claim, so that any server can take the operation at once. */
export async function releaseSnapshotOperation(db: Database, id: string): Promise<void> {
  await db
    .updateTable('snapshot_operations')
    .set({ claimed_by: null, claimed_until: null })
    .where('id', '=', id)
    .execute();
}

function toSnapshot(row: Selectable<SnapshotRow>): SnapshotRecord {
  return {
    id: row.id,
    organizationId: row.organization_id,
    name: row.name,
    sandboxId: row.sandbox_id,
    sandboxName: row.sandbox_name,
    digest: row.digest,
    sizeBytes: Number(row.size_bytes),
    manifest: JSON.parse(row.manifest) as SnapshotRecord['manifest'],
    labels: JSON.parse(row.labels) as SnapshotRecord['labels'],
    createdAt: row.created_at,
  };
}

function toOperation(row: Selectable<SnapshotOperationRow>): SnapshotOperationRecord {
  const request = JSON.parse(row.request) as Pick<SnapshotOperationRecord, 'labels' | 'shouldReplace'>;
  return {
    id: row.id,
    organizationId: row.organization_id,
    snapshotId: row.snapshot_id,
    snapshotName: row.snapshot_name,
    sandboxId: row.sandbox_id,
    sandboxName: row.sandbox_name,
    ...request,
    // Written by the functions above only.
    status: row.status as SnapshotOperationStatus,
    error: row.error === null ? null : (JSON.parse(row.error) as { code: string; message: string }),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    completedAt: row.completed_at,
  };
}
