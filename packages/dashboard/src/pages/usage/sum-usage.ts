import type { RestCallOutput } from '@svc/sdk';

type SandboxUsage = RestCallOutput<'billing.getSandboxUsage'>;
type StorageUsage = RestCallOutput<'billing.getStorageUsage'>;

const HOUR_S = 3600;
const DAY_MS = 86_400_000;
const MIB_OF_GIB = 1024;

export interface DayUsage {
  /** `2026-02-03`, in UTC. */
  readonly day: string;
  readonly vcpuHours: number;
}

export interface ThingUsage {
  readonly id: string;
  readonly name: string;
  readonly kind: 'sandbox' | 'volume';
  readonly vcpuHours: number;
  readonly memoryGibHours: number;
  readonly diskGibHours: number;
}

/** Every day of the range, also days without use, so that gaps are visible. */
export function sumByDay({ rows }: SandboxUsage, from: Date, to: Date): readonly DayUsage[] {
  const sums = new Map<string, number>();
  for (const { day, vcpu_seconds: seconds } of rows) {
    const key = day.slice(0, 10);
    sums.set(key, (sums.get(key) ?? 0) + seconds / HOUR_S);
  }
  const first = Math.floor(from.getTime() / DAY_MS);
  const behind = Math.ceil(to.getTime() / DAY_MS);
  return Array.from({ length: Math.max(behind - first, 0) }, (_, index) => {
    const day = new Date((first + index) * DAY_MS).toISOString().slice(0, 10);
    return { day, vcpuHours: sums.get(day) ?? 0 };
  });
}

/** By sandbox and volume, largest first. */
export function sumByThing(sandboxes: SandboxUsage, storage: StorageUsage): readonly ThingUsage[] {
  const ofSandboxes = sandboxes.sandboxes.map(({ id, name }) => {
    const own = sandboxes.rows.filter((row) => row.sandbox_id === id);
    const sum = (read: (row: (typeof own)[number]) => number) => own.reduce((all, row) => all + read(row), 0);
    return {
      id,
      name,
      kind: 'sandbox' as const,
      vcpuHours: sum((row) => row.vcpu_seconds) / HOUR_S,
      memoryGibHours: sum((row) => row.mem_mib_seconds) / MIB_OF_GIB / HOUR_S,
      diskGibHours: sum((row) => row.disk_mib_seconds) / MIB_OF_GIB / HOUR_S,
    };
  });
  const ofVolumes = storage.volumes.map(({ id, name }) => {
    const own = storage.rows.filter((row) => row.volume_id === id);
    const seconds = own.reduce((all, row) => all + row.mib_seconds, 0);
    return {
      id,
      name: name ?? 'host volume',
      kind: 'volume' as const,
      vcpuHours: 0,
      memoryGibHours: 0,
      diskGibHours: seconds / MIB_OF_GIB / HOUR_S,
    };
  });
  return [...ofSandboxes, ...ofVolumes].toSorted(
    (a, b) => b.vcpuHours - a.vcpuHours || b.diskGibHours - a.diskGibHours,
  );
}

/** Exports CSV for spreadsheets. Names that begin like a formula are escaped as text. */
export function toCsv(things: readonly ThingUsage[]): string {
  const cell = (value: string) =>
    `"${(/^[=+\-@\t\r]/.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
  const rows = things.map(({ kind, id, name, vcpuHours, memoryGibHours, diskGibHours }) =>
    [cell(kind), cell(id), cell(name), vcpuHours, memoryGibHours, diskGibHours].join(','),
  );
  return ['kind,id,name,vcpu_hours,memory_gib_hours,disk_gib_hours', ...rows, ''].join('\r\n');
}
