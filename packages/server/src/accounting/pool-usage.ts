import type { Database } from '../store/database.ts';
import { readSandboxUsage, type SandboxUsageRow } from './sandbox-usage.ts';
import { HOUR_SECONDS, monthUntil } from './time-window.ts';

const MIB_PER_GIB = 1024;

export interface PoolUsage {
  readonly vcpuHours: number;
  readonly memoryGibHours: number;
  readonly diskGibHours: number;
}

/** Of the calendar month so far. */
export async function readPoolUsage(db: Database, organizationId: string, nowMs: number): Promise<PoolUsage> {
  return sumPool(await readSandboxUsage(db, organizationId, monthUntil(nowMs)));
}

export function sumPool(rows: readonly SandboxUsageRow[]): PoolUsage {
  let [vcpuSeconds, memoryMibSeconds, diskMibSeconds] = [0, 0, 0];
  for (const row of rows) {
    vcpuSeconds += row.vcpuSeconds;
    memoryMibSeconds += row.memoryMibSeconds;
    diskMibSeconds += row.diskMibSeconds;
  }
  return {
    vcpuHours: vcpuSeconds / HOUR_SECONDS,
    memoryGibHours: memoryMibSeconds / MIB_PER_GIB / HOUR_SECONDS,
    diskGibHours: diskMibSeconds / MIB_PER_GIB / HOUR_SECONDS,
  };
}
