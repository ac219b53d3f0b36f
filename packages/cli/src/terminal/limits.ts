import type { ErrorDetails } from '@svc/contract/errors';
import type { LimitName } from '@svc/contract/rest';
import { formatBytes, formatDuration } from './amounts.ts';

interface ShownLimit {
  readonly label: string;
  /** Formats a value; null is unlimited. */
  readonly format: (value: number) => string;
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const count = (value: number) => (Number.isInteger(value) ? String(value) : value.toFixed(3));
const gib = (value: number) => formatBytes(value * GIB);
const mib = (value: number) => formatBytes(value * MIB);
const minutes = (value: number) => formatDuration(value * 60);

/** Every limit in plain words, in the order in which tables show them. */
const SHOWN: Readonly<Record<LimitName, ShownLimit>> = {
  max_sandboxes: { label: 'Sandboxes', format: count },
  max_concurrent_ephemeral_running: { label: 'Ephemeral sandboxes running', format: count },
  max_concurrent_persistent_running: { label: 'Persistent sandboxes running', format: count },
  max_vcpus_per_sandbox: { label: 'vCPUs of one sandbox', format: count },
  max_memory_mib_per_sandbox: { label: 'Memory of one sandbox', format: mib },
  max_disk_size_mib_per_sandbox: { label: 'Disk of one sandbox', format: mib },
  max_uptime_minutes_per_sandbox: { label: 'Longest run of one sandbox', format: minutes },
  max_total_storage_gib: { label: 'Volumes', format: gib },
  max_snapshot_storage_gib: { label: 'Snapshots', format: gib },
  max_image_storage_gib: { label: 'Images', format: gib },
  included_vcpu_hours: { label: 'vCPU hours this month', format: count },
  included_memory_gib_hours: { label: 'Memory, GiB hours this month', format: count },
  included_disk_gib_hours: { label: 'Disk, GiB hours this month', format: count },
  included_storage_gib: { label: 'Volumes, average of this month', format: gib },
};

export const LIMITS_IN_ORDER = Object.keys(SHOWN) as readonly LimitName[]; // The keys are checked above.

export function labelOfLimit(name: LimitName): string {
  return SHOWN[name].label;
}

/** Rewrites a refusal of the server, which names a limit as the API does, with the words and units of the tables. */
export function toLimitLabels(message: string, details: ErrorDetails | null): string {
  const { limit, value, maximum } = details ?? {};
  const stated = `${String(limit)} is ${String(maximum)}, this makes it ${String(value)}`;
  if (typeof value !== 'number' || typeof maximum !== 'number') return message;
  if (!isLimitName(limit)) return message.replace(stated, `at most ${maximum}, this makes it ${value}`);
  const [most, asked] = [formatLimit(limit, maximum), formatLimit(limit, value)];
  return message.replace(stated, `${labelOfLimit(limit)}: at most ${most}, this makes it ${asked}`);
}

function isLimitName(name: unknown): name is LimitName {
  return typeof name === 'string' && Object.hasOwn(SHOWN, name);
}

export function formatLimit(name: LimitName, value: number | null): string {
  return value === null ? 'unlimited' : SHOWN[name].format(value);
}
