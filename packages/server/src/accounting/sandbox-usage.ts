import type { Database } from '../store/database.ts';
import { listRunsWithin, type StoredRuns } from '../store/usage.ts';
import {
  parseStored,
  splitByDay,
  STORED_LENGTH,
  toStored,
  type Stretch,
  type TimeWindow,
} from './time-window.ts';

/** Allocated amounts multiplied by seconds. */
export interface SandboxUsageRow {
  readonly sandboxId: string;
  readonly dayMs: number;
  readonly vcpuSeconds: number;
  readonly memoryMibSeconds: number;
  readonly diskMibSeconds: number;
}

/**
 * Usage of an organization's sandboxes, one row per sandbox and day, by day. Computed from the runs; one that is still running counts
 * until now.
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

function sumRuns(stored: readonly StoredRuns[], window: TimeWindow): readonly SandboxUsageRow[] {
  const days = new Map<number, Map<string, Sum>>();
  for (const { sandbox_id: sandboxId, stretches, ...sizes } of stored) {
    for (const stretch of readStretches(stretches)) {
      splitByDay(stretch, window, (dayMs, milliseconds) => {
        const sum = sumOf(days, sandboxId, dayMs);
        sum.vcpuMs += milliseconds * sizes.vcpus;
        sum.memoryMibMs += milliseconds * sizes.memory_mib;
        sum.diskMibMs += milliseconds * sizes.disk_mib;
      });
    }
  }
  return [...days].toSorted(([a], [b]) => a - b).flatMap(([, sums]) => [...sums.values()].map(toRow));
}

/** Parses `<start>/<end>,<start>/,…`; all times have the same length. */
function* readStretches(text: string): Generator<Stretch> {
  for (let at = 0; at < text.length;) {
    const startMs = parseStored(text, at);
    const endAt = at + STORED_LENGTH + 1;
    const isOpen = endAt >= text.length || text[endAt] === ',';
    yield { startMs, endMs: isOpen ? null : parseStored(text, endAt) };
    at = endAt + (isOpen ? 0 : STORED_LENGTH) + 1;
  }
}

function sumOf(days: Map<number, Map<string, Sum>>, sandboxId: string, dayMs: number): Sum {
  let sums = days.get(dayMs);
  if (sums === undefined) days.set(dayMs, (sums = new Map()));
  let sum = sums.get(sandboxId);
  if (sum === undefined)
    sums.set(sandboxId, (sum = { sandboxId, dayMs, vcpuMs: 0, memoryMibMs: 0, diskMibMs: 0 }));
  return sum;
}

/** Sums are whole numbers until here, so that rounding loses nothing on the way. */
function toRow({ sandboxId, dayMs, vcpuMs, memoryMibMs, diskMibMs }: Sum): SandboxUsageRow {
  return {
    sandboxId,
    dayMs,
    vcpuSeconds: vcpuMs / 1000,
    memoryMibSeconds: memoryMibMs / 1000,
    diskMibSeconds: diskMibMs / 1000,
  };
}
