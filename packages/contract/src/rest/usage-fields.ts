import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { nullable, Timestamp, Uuid } from './fields.ts';

const Day = Type.String({ description: 'Midnight in UTC, RFC 3339' });

/** The time that a sandbox ran on one day, times its allocation, exact to the millisecond. */
const SandboxUsageRow = strictObject({
  sandbox_id: Uuid,
  day: Day,
  vcpu_seconds: Type.Number(),
  mem_mib_seconds: Type.Number(),
  disk_mib_seconds: Type.Number(),
});

export const SandboxUsage = strictObject({
  rows: Type.Array(SandboxUsageRow, { description: 'One per sandbox and day' }),
  sandboxes: Type.Array(strictObject({ id: Uuid, name: Type.String(), slug: Type.String() }), {
    description: 'Those of the rows, deleted ones too',
  }),
});

export const StorageUsage = strictObject({
  rows: Type.Array(strictObject({ volume_id: Uuid, day: Day, mib_seconds: Type.Number() }), {
    description: 'One per volume and day',
  }),
  volumes: Type.Array(strictObject({ id: Uuid, name: nullable(Type.String()) }), {
    description: 'Those of the rows, deleted ones too',
  }),
});

const USAGE_METRICS = [
  'vcpu_hours',
  'memory_gib_hours',
  'disk_gib_hours',
  'storage_gib_hours',
  'snapshot_storage_gib_hours',
] as const;

/** Of the current calendar month in UTC. Amounts are estimates. */
export const UsageSummary = strictObject({
  period_start: Timestamp,
  period_end: Timestamp,
  line_items: Type.Array(
    strictObject({
      name: Type.String(),
      quantity: Type.Number(),
      unit: Type.String(),
      amount_cents: Type.Integer(),
    }),
  ),
  total_cents: Type.Integer(),
  daily: Type.Array(
    strictObject({ date: Day, metric: Type.Enum([...USAGE_METRICS]), quantity: Type.Number() }),
    { description: 'One per day and metric' },
  ),
  projected_spend_cents: Type.Integer({ description: 'If the month goes on like this' }),
  storage_gib: nullable(Type.Number(), { description: 'In volumes now; null when it was not measured yet' }),
  snapshot_storage_gib: nullable(Type.Number(), { description: 'In managed snapshots now' }),
});
