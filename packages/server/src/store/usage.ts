import { sql, type Expression, type ExpressionBuilder, type SqlBool } from 'kysely';
import type { Database, Tables } from './database.ts';

/** Number of ids per statement. */
const ID_BATCH = 500;

/** A half-open interval `[from, to)`, in the stored time format. */
export interface StoredWindow {
  readonly from: string;
  readonly to: string;
}

export interface StoredRuns {
  readonly sandbox_id: string;
  readonly vcpus: number;
  readonly memory_mib: number;
  readonly disk_mib: number;
  /** Start and end of each run as `<start>/<end>`, separated by commas; without an end while it lasts. */
  readonly stretches: string;
}

/**
 * Runs that overlap the window, unsorted. Runs of one sandbox with equal sizes share a row, because fetching rows
 * costs more than their contents.
 */
export async function listRunsWithin(
  db: Database,
  organizationId: string,
  { from, to }: StoredWindow,
): Promise<readonly StoredRuns[]> {
  const runs = (build: ExpressionBuilder<Tables, never>) =>
    build
      .selectFrom('runs')
      .select(['sandbox_id', 'vcpus', 'memory_mib', 'disk_mib', 'started_at', 'ended_at'])
      .where('organization_id', '=', organizationId)
      .where('started_at', '<', to);
  return await db
    .selectFrom((build) =>
      // Two ranges of one index; an `or` would make it scan the whole history.
      runs(build)
        .where('ended_at', '>', from)
        .unionAll(runs(build).where('ended_at', 'is', null))
        .as('touching'),
    )
    .select(['sandbox_id', 'vcpus', 'memory_mib', 'disk_mib'])
    .select(sql<string>`string_agg(started_at || '/' || coalesce(ended_at, ''), ',')`.as('stretches'))
    .groupBy(['sandbox_id', 'vcpus', 'memory_mib', 'disk_mib'])
    .execute();
}

/** Name and slug of these sandboxes, including deleted ones. */
export async function listSandboxNames(
  db: Database,
  ids: readonly string[],
): Promise<readonly { readonly id: string; readonly name: string; readonly slug: string }[]> {
  const found = [];
  for (let start = 0; start < ids.length; start += ID_BATCH) {
    const batch = ids.slice(start, start + ID_BATCH);
    // Padded to a fixed length, so that there is one prepared statement.
    const filled = [...batch, ...Array.from({ length: ID_BATCH - batch.length }, () => batch[0] ?? '')];
    found.push(
      ...(await db
        .selectFrom('sandboxes')
        .select(['id', 'name', 'slug'])
        .where('id', 'in', filled)
        .execute()),
    );
  }
  return found;
}

export interface StoredAmount {
  readonly owner_id: string;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly bytes: number;
}

/** The measured sizes of volumes, with their intervals. */
export async function listVolumeUsageWithin(
  db: Database,
  organizationId: string,
  { from, to }: StoredWindow,
): Promise<readonly StoredAmount[]> {
  const rows = await db
    .selectFrom('volume_usage')
    .select(['volume_id as owner_id', 'started_at', 'ended_at', 'used_bytes as bytes'])
    .where('organization_id', '=', organizationId)
    .where('started_at', '<', to)
    .where('ended_at', '>', from)
    .execute();
  return rows.map((row) => ({ ...row, bytes: Number(row.bytes) }));
}

/** Names of volumes, including deleted ones. */
export async function listVolumeNames(
  db: Database,
  organizationId: string,
): Promise<readonly { readonly id: string; readonly name: string | null }[]> {
  return await db
    .selectFrom('volumes')
    .select(['id', 'name'])
    .where('organization_id', '=', organizationId)
    .execute();
}

/** The sizes of managed snapshots, with their intervals. */
export async function listSnapshotsWithin(
  db: Database,
  organizationId: string,
  { from, to }: StoredWindow,
): Promise<readonly StoredAmount[]> {
  const rows = await db
    .selectFrom('snapshots')
    .select(['id as owner_id', 'created_at as started_at', 'removed_at as ended_at', 'size_bytes as bytes'])
    .where('organization_id', '=', organizationId)
    .where('created_at', '<', to)
    .where((where): Expression<SqlBool> =>
      where.or([where('removed_at', 'is', null), where('removed_at', '>', from)]),
    )
    .execute();
  return rows.map((row) => ({ ...row, bytes: Number(row.bytes) }));
}

/** Total bytes in existing volumes, as last measured; null when none was measured. */
export async function readVolumeBytes(db: Database, organizationId: string): Promise<number | null> {
  const rows = await latestVolumeUsage(db, organizationId).execute();
  if (rows.every(({ bytes }) => bytes === null)) return null;
  return rows.reduce((sum, { bytes }) => sum + Number(bytes ?? 0), 0);
}

/**
 * Bytes of the storage quota that volumes take: the capacity of a volume that has one, otherwise the bytes that it
 * holds.
 */
export async function readVolumeRoomBytes(db: Database, organizationId: string): Promise<number> {
  const rows = await latestVolumeUsage(db, organizationId).execute();
  return rows.reduce(
    (sum, { capacity_gib: gib, bytes }) => sum + (gib === null ? Number(bytes ?? 0) : gib * 2 ** 30),
    0,
  );
}

export async function readSnapshotBytes(db: Database, organizationId: string): Promise<number> {
  const row = await db
    .selectFrom('snapshots')
    .select((build) => build.fn.sum<number | string | null>('size_bytes').as('bytes'))
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return Number(row?.bytes ?? 0);
}

function latestVolumeUsage(db: Database, organizationId: string) {
  return db
    .selectFrom('volumes')
    .select((build) => [
      'capacity_gib',
      build
        .selectFrom('volume_usage')
        .select('used_bytes')
        .whereRef('volume_usage.volume_id', '=', 'volumes.id')
        .orderBy('volume_usage.started_at', 'desc')
        .limit(1)
        .as('bytes'),
    ])
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null);
}
