import { PlatformError } from '@svc/contract';
import { LIMIT_NAMES, type BillingPlan, type Limits } from '@svc/contract/rest';
import { sql } from 'kysely';
import type { Database } from './database.ts';
import { choosePlan, listPlans } from './plans.ts';
import { prepareLookup } from './prepare-lookup.ts';

/** Limits and prices of an organization. */
export interface Terms {
  readonly plan: BillingPlan;
  /** The organization's override if set, otherwise the plan's limit. */
  readonly limits: Limits;
  readonly hasOwnLimits: boolean;
  /** The plan has no overage price, so that its pools must not be exceeded. */
  readonly isHardCap: boolean;
  readonly isSuspended: boolean;
}

/**
 * The current terms; they do not change in a transaction that locked the organization. @throws PlatformError
 * `org_not_found`
 */
export async function readTerms(db: Database, organizationId: string): Promise<Terms> {
  const row = await selectTerms(db, { organizationId });
  if (row === undefined) throw new PlatformError('org_not_found', 'the organization is gone');
  return toTerms(await listPlans(db), row);
}

const selectTerms = prepareLookup(['organizationId'], (db, { organizationId }) =>
  db.selectFrom('organizations').select(['plan', 'quotas', 'is_suspended']).where('id', '=', organizationId),
);

/** The overrides of this organization, by the names of limits. */
export async function readOwnLimits(
  db: Database,
  organizationId: string,
): Promise<Readonly<Record<string, unknown>>> {
  const { quotas } = await db
    .selectFrom('organizations')
    .select('quotas')
    .where('id', '=', organizationId)
    .executeTakeFirstOrThrow();
  return JSON.parse(quotas) as Readonly<Record<string, unknown>>;
}

/** Changes the given limits and keeps the others. */
export async function updateTerms(
  db: Database,
  organizationId: string,
  change: {
    readonly quotas: Readonly<Record<string, unknown>>;
    readonly plan?: string;
    readonly isSuspended?: boolean;
  },
): Promise<void> {
  const { quotas, plan, isSuspended } = change;
  await db
    .updateTable('organizations')
    .set({
      quotas: JSON.stringify(quotas),
      ...(plan === undefined ? {} : { plan }),
      ...(isSuspended === undefined ? {} : { is_suspended: isSuspended ? 1 : 0 }),
      updated_at: new Date().toISOString(),
    })
    .where('id', '=', organizationId)
    .execute();
}

export function toTerms(
  plans: readonly BillingPlan[],
  row: { readonly plan: string; readonly quotas: string; readonly is_suspended: number },
): Terms {
  const plan = choosePlan(plans, row.plan);
  // Written by `setQuotas` only, with these names.
  const own = JSON.parse(row.quotas) as Partial<Limits>;
  return {
    plan,
    limits: { ...limitsOf(plan), ...own },
    hasOwnLimits: Object.keys(own).length > 0,
    isHardCap: !isPriced(plan),
    isSuspended: row.is_suspended !== 0,
  };
}

export function isPriced(plan: BillingPlan): boolean {
  const prices = [
    plan.subscription_price_cents,
    plan.usage_vcpu_hour_usd,
    plan.usage_memory_gib_hour_usd,
    plan.usage_disk_gib_hour_usd,
    plan.usage_storage_gib_month_usd,
    plan.usage_snapshot_storage_gib_month_usd,
  ];
  return prices.some((price) => price !== null);
}

function limitsOf(plan: BillingPlan): Limits {
  // Built from the list of all names.
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, plan[name]])) as Limits;
}

/** Counts sandboxes in any state. */
export async function countSandboxesOf(db: Database, organizationId: string): Promise<number> {
  const row = await db
    .selectFrom('sandboxes')
    .select((build) => build.fn.countAll<number | string>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

export interface RunningCount {
  readonly ephemeral: number;
  readonly persistent: number;
}

/** Counts sandboxes that run, start or wait for a start. Failed and stopping ones do not count. */
export async function countRunning(db: Database, organizationId: string): Promise<RunningCount> {
  const rows = await db
    .selectFrom('sandboxes')
    .select((build) => ['is_ephemeral', build.fn.countAll<number | string>().as('count')])
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null)
    // Must be spelled as in the index that covers it; the database does not use the index otherwise.
    .where(sql<boolean>`desired in ('running', 'restarted')`)
    .where('observed', '!=', 'failed')
    .groupBy('is_ephemeral')
    .execute();
  const count = (isEphemeral: boolean) =>
    Number(rows.find((row) => (row.is_ephemeral !== 0) === isEphemeral)?.count ?? 0);
  return { ephemeral: count(true), persistent: count(false) };
}

export interface OpenRun {
  readonly sandboxId: string;
  readonly organizationId: string;
  readonly startedAt: string;
  readonly terms: Terms;
}

/** Open runs of sandboxes that are to keep running, with the terms of their organizations. */
export async function listOpenRuns(db: Database): Promise<readonly OpenRun[]> {
  const plans = await listPlans(db);
  const rows = await db
    .selectFrom('runs')
    .innerJoin('sandboxes', 'sandboxes.id', 'runs.sandbox_id')
    .innerJoin('organizations', 'organizations.id', 'sandboxes.organization_id')
    .select([
      'runs.sandbox_id',
      'runs.started_at',
      'sandboxes.organization_id',
      'organizations.plan',
      'organizations.quotas',
      'organizations.is_suspended',
    ])
    .where('runs.ended_at', 'is', null)
    .where('sandboxes.desired', 'in', ['running', 'restarted'])
    .where('sandboxes.removed_at', 'is', null)
    .execute();
  return rows.map((row) => ({
    sandboxId: row.sandbox_id,
    organizationId: row.organization_id,
    startedAt: row.started_at,
    terms: toTerms(plans, row),
  }));
}
