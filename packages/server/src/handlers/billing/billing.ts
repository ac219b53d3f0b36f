import { PlatformError } from '@svc/contract';
import type { RestOutput, RestOperations } from '@svc/contract/rest';
import { badField } from '../../dispatch/rest-dispatch.ts';
import { setQuotas } from '../../accounting/set-quotas.ts';
import type { Database } from '../../store/database.ts';
import { listPlans } from '../../store/plans.ts';
import { isPriced, readTerms, type Terms } from '../../store/quotas.ts';
import { listSandboxNames, listVolumeNames } from '../../store/usage.ts';
import { readSandboxUsage } from '../../accounting/sandbox-usage.ts';
import { readVolumeUsage } from '../../accounting/storage-usage.ts';
import { summarizeUsage } from '../../accounting/summarize-usage.ts';
import { monthOf, type TimeWindow } from '../../accounting/time-window.ts';
import { readTime } from '../../dispatch/read-time.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';

type BillingName = Extract<keyof RestHandlers, `billing.${string}`>;
type BillingSummary = RestOutput<RestOperations['billing.get']>;

export function billingHandlers(database: Database): Pick<RestHandlers, BillingName> {
  return {
    'billing.get': async (_input, { organization }) =>
      describeBilling(await readTerms(database, organization.id)),
    'billing.listPlans': async () => [...(await listPlans(database))],
    'billing.choosePlan': async ({ body }, call) => {
      const { organization, actor, requestId, sourceAddress } = call;
      const origin = { actor, requestId, sourceAddress };
      return await call.commit(
        async ({ db }) => {
          await requireSelfServe(db, body.plan);
          await setQuotas(db, organization.id, { plan: body.plan }, origin);
          return describeBilling(await readTerms(db, organization.id));
        },
        (summary) => summary,
      );
    },
    'billing.listInvoices': async () => await Promise.resolve([]),
    'billing.getInvoice': async ({ params }) => {
      const message = `There is no invoice ${params.invoice_id}; this server writes none`;
      return await Promise.reject(new PlatformError('not_found', message));
    },
    'billing.getUsage': async (_input, { organization }) =>
      await summarizeUsage(database, organization.id, Date.now()),
    'billing.getSandboxUsage': async ({ query }, { organization }) =>
      await describeSandboxUsage(database, organization.id, readWindow(query)),
    'billing.getStorageUsage': async ({ query }, { organization }) =>
      await describeStorageUsage(database, organization.id, readWindow(query)),
  };
}

async function requireSelfServe(db: Database, name: string): Promise<void> {
  const plans = (await listPlans(db)).filter((plan) => plan.self_serve);
  if (plans.some((plan) => plan.name === name)) return;
  const names = plans.map((plan) => plan.name).join(', ');
  const choice =
    names === '' ? 'ask the operator of this server, who offers none here' : `choose one of ${names}`;
  throw badField('plan', `cannot be '${name}': ${choice}`);
}

/** @throws PlatformError `invalid_request` naming the field */
function readWindow({ from, to }: { readonly from?: string; readonly to?: string }): TimeWindow {
  const nowMs = Date.now();
  const fromMs = from === undefined ? monthOf(nowMs).startMs : readTime('from', from);
  const toMs = to === undefined ? nowMs : readTime('to', to);
  if (fromMs < toMs) return { fromMs, toMs, nowMs };
  // Only `to` was given, and it lies before the default of `from`.
  if (from === undefined)
    throw badField('from', 'must be given when `to` lies before the start of this month');
  throw badField('from', `must lie before ${to === undefined ? 'now' : '`to`'}`);
}

async function describeSandboxUsage(
  db: Database,
  organizationId: string,
  window: TimeWindow,
): Promise<RestOutput<RestOperations['billing.getSandboxUsage']>> {
  const usage = await readSandboxUsage(db, organizationId, window);
  const sandboxes = await listSandboxNames(db, [...new Set(usage.map(({ sandboxId }) => sandboxId))]);
  const dayOf = dayWriter();
  return {
    rows: usage.map((row) => ({
      sandbox_id: row.sandboxId,
      day: dayOf(row.dayMs),
      vcpu_seconds: row.vcpuSeconds,
      mem_mib_seconds: row.memoryMibSeconds,
      disk_mib_seconds: row.diskMibSeconds,
    })),
    sandboxes: [...sandboxes],
  };
}

async function describeStorageUsage(
  db: Database,
  organizationId: string,
  window: TimeWindow,
): Promise<RestOutput<RestOperations['billing.getStorageUsage']>> {
  const usage = await readVolumeUsage(db, organizationId, window);
  const used = new Set(usage.map(({ ownerId }) => ownerId));
  const volumes = used.size === 0 ? [] : await listVolumeNames(db, organizationId);
  const dayOf = dayWriter();
  return {
    rows: usage.map(({ ownerId, dayMs, mibSeconds }) => ({
      volume_id: ownerId,
      day: dayOf(dayMs),
      mib_seconds: mibSeconds,
    })),
    volumes: volumes.filter(({ id }) => used.has(id)),
  };
}

/** Rows come by day, and there are many of each. */
function dayWriter(): (dayMs: number) => string {
  let latest = { dayMs: Number.NaN, text: '' };
  return (dayMs) => {
    if (dayMs !== latest.dayMs) latest = { dayMs, text: new Date(dayMs).toISOString() };
    return latest.text;
  };
}

function describeBilling({ plan, hasOwnLimits, isSuspended }: Terms): BillingSummary {
  return {
    plan: { name: plan.name, display_name: plan.display_name, has_custom_billing_terms: hasOwnLimits },
    effective_pricing: {
      subscription_price_cents: plan.subscription_price_cents,
      usage_vcpu_hour_usd: plan.usage_vcpu_hour_usd,
      usage_memory_gib_hour_usd: plan.usage_memory_gib_hour_usd,
      usage_disk_gib_hour_usd: plan.usage_disk_gib_hour_usd,
      usage_storage_gib_month_usd: plan.usage_storage_gib_month_usd,
      usage_snapshot_storage_gib_month_usd: plan.usage_snapshot_storage_gib_month_usd,
    },
    effective_state: isSuspended ? 'suspended' : isPriced(plan) ? 'active' : 'free',
    is_suspended: isSuspended,
    available_credit_cents: null,
    billing_terms_override: null,
    checkout_url: null,
    current_period_ends_at: new Date(monthOf(Date.now()).endMs).toISOString(),
    pending_plan: null,
  };
}
