import type { Database } from '../store/database.ts';
import { listRunsWithin, type StoredRun } from '../store/usage.ts';
import { splitByDay, toStored, type TimeWindow } from './time-window.ts';

/** Seconds times what was allocated. */
export interface SandboxUsageRow {
  readonly sandboxId: string;
  readonly dayMs: number;
  readonly vcpuSeconds: number;
  readonly memoryMibSeconds: number;
  readonly diskMibSeconds: number;
}

/**
 * What the sandboxes of an organization used, one row per sandbox and day, by day. Computed from the runs: one
 * that lasts counts until now.
 */
export async function readSandboxUsage(
  db: Database,
  organizationId: string,
  window: TimeWindow,
): Promise<readonly SandboxUsageRow[]> {
  return sumRuns(await listRunsWithin(db, organizationId, toStored(window)), window);
}

interface Sum {
  readonly sandboxId: string;
  readonly dayMs: number;
  vcpuMs: number;
  memoryMibMs: number;
  diskMibMs: number;
}

function sumRuns(runs: readonly StoredRun[], window: TimeWindow): readonly SandboxUsageRow[] {
  const days = new Map<number, Map<string, Sum>>();
  for (const run of runs) {
    splitByDay(run, window, (dayMs, milliseconds) => {
      const sum = sumOf(days, run.sandbox_id, dayMs);
      sum.vcpuMs += milliseconds * run.vcpus;
      sum.memoryMibMs += milliseconds * run.memory_mib;
      sum.diskMibMs += milliseconds * run.disk_mib;
    });
  }
  return [...days].toSorted(([a], [b]) => a - b).flatMap(([, sums]) => [...sums.values()].map(toRow));
}

function sumOf(days: Map<number, Map<string, Sum>>, sandboxId: string, dayMs: number): Sum {
  let sums = days.get(dayMs);
  if (sums === undefined) days.set(dayMs, (sums = new Map()));
  let sum = sums.get(sandboxId);
  if (sum === undefined)
    sums.set(sandboxId, (sum = { sandboxId, dayMs, vcpuMs: 0, memoryMibMs: 0, diskMibMs: 0 }));
  return sum;
}

/** Sums are whole numbers until here, so that nothing is lost by rounding on the way. */
function toRow({ sandboxId, dayMs, vcpuMs, memoryMibMs, diskMibMs }: Sum): SandboxUsageRow {
  return {
    sandboxId,
    dayMs,
    vcpuSeconds: vcpuMs / 1000,
    memoryMibSeconds: memoryMibMs / 1000,
    diskMibSeconds: diskMibMs / 1000,
  };
}
