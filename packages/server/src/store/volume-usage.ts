import { sql } from 'kysely';
import type { Database } from './database.ts';

/** The size of a volume at a time. */
export interface VolumeSample {
  readonly volumeId: string;
  readonly organizationId: string;
  /** RFC 3339, UTC, with milliseconds. */
  readonly at: string;
  readonly usedBytes: number;
}

export interface VolumeInterval {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly usedBytes: number;
}

/** Starts the record of a new volume, which holds nothing since `at`. */
export async function openUsage(
  db: Database,
  volume: { readonly id: string; readonly organization_id: string },
  at: string,
): Promise<void> {
  await addInterval(db, { volumeId: volume.id, organizationId: volume.organization_id, at, usedBytes: 0 });
}

/**
 * Continues the record of a volume. The previous measurement counts until `at`, so that the intervals of a volume
 * have no gaps or overlaps, independent of which server measures and how long none did. A sample that is not newer
 * than the record is ignored: another server was faster, or the clock was set back.
 * Call it in a transaction.
 */
export async function recordUsage(transaction: Database, sample: VolumeSample): Promise<void> {
  await lockVolume(transaction, sample.volumeId);
  const last = await findLast(transaction, sample.volumeId);
  if (last === undefined) return await addInterval(transaction, sample);
  if (sample.at <= last.endedAt) return;
  await transaction
    .updateTable('volume_usage')
    .set({ ended_at: sample.at })
    .where('volume_id', '=', sample.volumeId)
    .where('started_at', '=', last.startedAt)
    .execute();
  if (sample.usedBytes !== last.usedBytes) await addInterval(transaction, sample);
}

/** Closes the record of a deleted volume at `at`. */
export async function closeUsage(transaction: Database, volumeId: string, at: string): Promise<void> {
  await lockVolume(transaction, volumeId);
  const last = await findLast(transaction, volumeId);
  if (last === undefined || at <= last.endedAt) return;
  await transaction
    .updateTable('volume_usage')
    .set({ ended_at: at })
    .where('volume_id', '=', volumeId)
    .where('started_at', '=', last.startedAt)
    .execute();
}

/** The end time of each volume's record. */
export async function latestSampleTimes(db: Database): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('volume_usage')
    .innerJoin('volumes', 'volumes.id', 'volume_usage.volume_id')
    .select(({ fn }) => ['volume_usage.volume_id', fn.max('volume_usage.ended_at').as('ended_at')])
    .where('volumes.removed_at', 'is', null)
    .groupBy('volume_usage.volume_id')
    .execute();
  return new Map(rows.map(({ volume_id, ended_at }) => [volume_id, ended_at]));
}

/** The intervals of a volume that overlap the period, oldest first. */
export async function listUsage(
  db: Database,
  volumeId: string,
  period: { readonly from: string; readonly to: string },
): Promise<readonly VolumeInterval[]> {
  const rows = await db
    .selectFrom('volume_usage')
    .select(['started_at', 'ended_at', 'used_bytes'])
    .where('volume_id', '=', volumeId)
    .where('started_at', '<=', period.to)
    .where('ended_at', '>=', period.from)
    .orderBy('started_at')
    .execute();
  return rows.map(toInterval);
}

/** Other transactions that record for the same volume wait until the end of this one. */
async function lockVolume(transaction: Database, volumeId: string): Promise<void> {
  await transaction
    .updateTable('volumes')
    .set({ version: sql<number>`version` })
    .where('id', '=', volumeId)
    .execute();
}

async function findLast(db: Database, volumeId: string): Promise<VolumeInterval | undefined> {
  const row = await db
    .selectFrom('volume_usage')
    .select(['started_at', 'ended_at', 'used_bytes'])
    .where('volume_id', '=', volumeId)
    .orderBy('started_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? undefined : toInterval(row);
}

async function addInterval(db: Database, sample: VolumeSample): Promise<void> {
  const { volumeId, organizationId, at, usedBytes } = sample;
  await db
    .insertInto('volume_usage')
    .values({
      volume_id: volumeId,
      organization_id: organizationId,
      started_at: at,
      ended_at: at,
      used_bytes: usedBytes,
    })
    .execute();
}

function toInterval(row: {
  readonly started_at: string;
  readonly ended_at: string;
  readonly used_bytes: number | string;
}): VolumeInterval {
  return { startedAt: row.started_at, endedAt: row.ended_at, usedBytes: Number(row.used_bytes) };
}
