import type { Database } from '../store/database.ts';
import { listSnapshotsWithin, listVolumeUsageWithin, type StoredAmount } from '../store/usage.ts';
import { parseStored, splitByDay, toStored, type TimeWindow } from './time-window.ts';

const MIB = 1024 * 1024;

export interface StorageUsageRow {
  /** A volume or snapshot. */
  readonly ownerId: string;
  readonly dayMs: number;
  readonly mibSeconds: number;
}

/** One row per volume and day, by day and volume. */
export async function readVolumeUsage(
  db: Database,
  organizationId: string,
  window: TimeWindow,
): Promise<readonly StorageUsageRow[]> {
  return sumAmounts(await listVolumeUsageWithin(db, organizationId, toStored(window)), window);
}

/** One row per managed snapshot and day. */
export async function readSnapshotUsage(
  db: Database,
  organizationId: string,
  window: TimeWindow,
): Promise<readonly StorageUsageRow[]> {
  return sumAmounts(await listSnapshotsWithin(db, organizationId, toStored(window)), window);
}

function sumAmounts(amounts: readonly StoredAmount[], window: TimeWindow): readonly StorageUsageRow[] {
  const sums = new Map<string, { ownerId: string; dayMs: number; mibSeconds: number }>();
  for (const amount of amounts) {
    const { started_at: start, ended_at: end } = amount;
    const stretch = { startMs: parseStored(start), endMs: end === null ? null : parseStored(end) };
    splitByDay(stretch, window, (dayMs, milliseconds) => {
      const key = `${dayMs} ${amount.owner_id}`;
      const sum = sums.get(key) ?? { ownerId: amount.owner_id, dayMs, mibSeconds: 0 };
      sum.mibSeconds += ((amount.bytes / MIB) * milliseconds) / 1000;
      sums.set(key, sum);
    });
  }
  return [...sums.values()].sort((a, b) => a.dayMs - b.dayMs || (a.ownerId < b.ownerId ? -1 : 1));
}
