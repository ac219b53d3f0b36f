import type { BillingPlan, Limits, RestOperations, RestOutput } from '@svc/contract/rest';
import type { Database } from '../store/database.ts';
import { readTerms } from '../store/quotas.ts';
import { readSnapshotBytes, readVolumeBytes } from '../store/usage.ts';
import { sumPool } from './pool-usage.ts';
import { readSandboxUsage } from './sandbox-usage.ts';
import { readSnapshotUsage, readVolumeUsage, type StorageUsageRow } from './storage-usage.ts';
import { HOUR_SECONDS, monthOf, monthUntil } from './time-window.ts';

type UsageSummary = RestOutput<RestOperations['billing.getUsage']>;
type Metric = UsageSummary['daily'][number]['metric'];

const GIB = 2 ** 30;
const MIB_PER_GIB = 1024;

/** Usage of the month so far, its cost at the plan's prices, and the projected cost of the whole month. */
export async function summarizeUsage(
  db: Database,
  organizationId: string,
  nowMs: number,
): Promise<UsageSummary> {
  const window = monthUntil(nowMs);
  const { startMs, endMs } = monthOf(nowMs);
  const [{ plan, limits }, sandboxes, volumes, snapshots, volumeBytes, snapshotBytes] = await Promise.all([
    readTerms(db, organizationId),
    readSandboxUsage(db, organizationId, window),
    readVolumeUsage(db, organizationId, window),
    readSnapshotUsage(db, organizationId, window),
    readVolumeBytes(db, organizationId),
    readSnapshotBytes(db, organizationId),
  ]);
  const totals = {
    ...sumPool(sandboxes),
    storageGibHours: gibHours(volumes),
    snapshotGibHours: gibHours(snapshots),
  };
  const items = priceItems(plan, limits, totals, (endMs - startMs) / 1000 / HOUR_SECONDS);
  const usageCents = items.reduce((sum, item) => sum + item.amount_cents, 0);
  const subscriptionCents = Math.round(plan.subscription_price_cents ?? 0);
  // At the first moment of a month there is nothing to extrapolate from.
  const growth = nowMs === startMs ? 1 : (endMs - startMs) / (nowMs - startMs);
  return {
    period_start: new Date(startMs).toISOString(),
    period_end: new Date(endMs).toISOString(),
    line_items: [...subscriptionItem(plan, subscriptionCents), ...items],
    total_cents: subscriptionCents + usageCents,
    daily: describeDays(sandboxes, volumes, snapshots),
    projected_spend_cents: subscriptionCents + Math.round(usageCents * growth),
    storage_gib: volumeBytes === null ? null : volumeBytes / GIB,
    snapshot_storage_gib: snapshotBytes / GIB,
  };
}

interface Totals {
  readonly vcpuHours: number;
  readonly memoryGibHours: number;
  readonly diskGibHours: number;
  readonly storageGibHours: number;
  readonly snapshotGibHours: number;
}

function subscriptionItem(plan: BillingPlan, cents: number): UsageSummary['line_items'] {
  if (plan.subscription_price_cents === null) return [];
  return [{ name: plan.display_name, quantity: 1, unit: 'month', amount_cents: cents }];
}

/** A GiB-month is a GiB that was kept for all the hours of this month. */
function priceItems(
  plan: BillingPlan,
  limits: Limits,
  totals: Totals,
  hoursOfMonth: number,
): UsageSummary['line_items'] {
  const item = (
    name: string,
    quantity: number,
    unit: string,
    usd: number | null,
    included: number | null,
  ) => {
    // Where overage has a price, an included amount of null means zero, not unlimited.
    const billable = Math.max(0, quantity - (included ?? 0));
    return { name, quantity, unit, amount_cents: Math.round(billable * (usd ?? 0) * 100) };
  };
  const months = (hours: number) => hours / hoursOfMonth;
  return [
    item('vCPU', totals.vcpuHours, 'vCPU-hour', plan.usage_vcpu_hour_usd, limits.included_vcpu_hours),
    item(
      'Memory',
      totals.memoryGibHours,
      'GiB-hour',
      plan.usage_memory_gib_hour_usd,
      limits.included_memory_gib_hours,
    ),
    item(
      'Disk',
      totals.diskGibHours,
      'GiB-hour',
      plan.usage_disk_gib_hour_usd,
      limits.included_disk_gib_hours,
    ),
    item(
      'Volume storage',
      months(totals.storageGibHours),
      'GiB-month',
      plan.usage_storage_gib_month_usd,
      limits.included_storage_gib,
    ),
    item(
      'Snapshot storage',
      months(totals.snapshotGibHours),
      'GiB-month',
      plan.usage_snapshot_storage_gib_month_usd,
      null,
    ),
  ];
}

function describeDays(
  sandboxes: Awaited<ReturnType<typeof readSandboxUsage>>,
  volumes: readonly StorageUsageRow[],
  snapshots: readonly StorageUsageRow[],
): UsageSummary['daily'] {
  const days = new Set([...sandboxes, ...volumes, ...snapshots].map(({ dayMs }) => dayMs));
  const ofDay = <Row extends { readonly dayMs: number }>(rows: readonly Row[], dayMs: number) =>
    rows.filter((row) => row.dayMs === dayMs);
  return [...days]
    .toSorted((a, b) => a - b)
    .flatMap((dayMs) => {
      const pool = sumPool(ofDay(sandboxes, dayMs));
      const quantities: Readonly<Record<Metric, number>> = {
        vcpu_hours: pool.vcpuHours,
        memory_gib_hours: pool.memoryGibHours,
        disk_gib_hours: pool.diskGibHours,
        storage_gib_hours: gibHours(ofDay(volumes, dayMs)),
        snapshot_storage_gib_hours: gibHours(ofDay(snapshots, dayMs)),
      };
      const date = new Date(dayMs).toISOString();
      // The keys are those of the record above.
      return Object.entries(quantities).map(([metric, quantity]) => ({
        date,
        metric: metric as Metric,
        quantity,
      }));
    });
}

function gibHours(rows: readonly StorageUsageRow[]): number {
  return rows.reduce((sum, { mibSeconds }) => sum + mibSeconds, 0) / MIB_PER_GIB / HOUR_SECONDS;
}
