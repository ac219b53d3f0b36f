import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { nullable } from './fields.ts';

const Limit = (description: string) =>
  nullable(Type.Integer({ minimum: 0, maximum: 2 ** 50 }), { description });

/**
 * The limits of a plan; an organization may have its own value in place of its plan's. Null: unlimited, or for the size of one
 * sandbox what this server can run.
 */
export const LIMIT_FIELDS = {
  included_vcpu_hours: Limit('Of a calendar month'),
  included_memory_gib_hours: Limit('Of a calendar month'),
  included_disk_gib_hours: Limit('Of a calendar month; only shown and priced, never a reason to stop'),
  included_storage_gib: Limit('Stored in volumes, as an average of the month; only priced'),
  max_sandboxes: Limit('Sandboxes that exist at once'),
  max_concurrent_ephemeral_running: Limit('Running or starting at once'),
  max_concurrent_persistent_running: Limit('Running or starting at once'),
  max_vcpus_per_sandbox: Limit('Null: what this server can run'),
  max_memory_mib_per_sandbox: Limit('Null: what this server can run'),
  max_disk_size_mib_per_sandbox: Limit('Null: what this server can run'),
  max_uptime_minutes_per_sandbox: Limit('A longer run is stopped'),
  max_total_storage_gib: Limit(
    'Volumes together: the capacity of those that have one, the content of the others',
  ),
  max_snapshot_storage_gib: Limit('Managed snapshots together'),
  max_image_storage_gib: Limit(
    'Images that the organization pulled or used, unpacked: each layer once, and 4 KiB for each file; without those of the operator',
  ),
};

/** The limits of an organization, by name. */
const Limits = strictObject(LIMIT_FIELDS);
export type Limits = Static<typeof Limits>;
export type LimitName = keyof Limits;

/** The names come from the table above. */
export const LIMIT_NAMES = Object.keys(LIMIT_FIELDS) as readonly LimitName[];

const Price = (description: string) => nullable(Type.Number({ minimum: 0, maximum: 1e9 }), { description });

const PRICE_FIELDS = {
  subscription_price_cents: Price('US cents per month'),
  usage_vcpu_hour_usd: Price('Beyond what is included'),
  usage_memory_gib_hour_usd: Price('Beyond what is included'),
  usage_disk_gib_hour_usd: Price('Beyond what is included'),
  usage_storage_gib_month_usd: Price('Beyond what is included'),
  usage_snapshot_storage_gib_month_usd: Price('Per GiB of managed snapshots'),
};
export const Prices = strictObject(PRICE_FIELDS);
export type Prices = Static<typeof Prices>;

/** A plan all of whose prices are null is unpriced: there is no way to pay for more, so its pools are hard caps. */
export const BillingPlan = strictObject({
  name: Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
    description: 'Lowercase letters, digits, hyphens and underscores',
  }),
  display_name: Type.String({ minLength: 1, maxLength: 128 }),
  description: nullable(Type.String({ maxLength: 4096 })),
  ...LIMIT_FIELDS,
  ...PRICE_FIELDS,
  self_serve: Type.Boolean({ description: 'Owners may choose it themselves' }),
  is_default: Type.Boolean({ description: 'What organizations have whose plan is not in the list' }),
  trial_duration_days: nullable(Type.Integer({ minimum: 0, maximum: 36_500 })),
});

export type BillingPlan = Static<typeof BillingPlan>;

const UNLIMITED: Limits = {
  included_vcpu_hours: null,
  included_memory_gib_hours: null,
  included_disk_gib_hours: null,
  included_storage_gib: null,
  max_sandboxes: null,
  max_concurrent_ephemeral_running: null,
  max_concurrent_persistent_running: null,
  max_vcpus_per_sandbox: null,
  max_memory_mib_per_sandbox: null,
  max_disk_size_mib_per_sandbox: null,
  max_uptime_minutes_per_sandbox: null,
  max_total_storage_gib: null,
  max_snapshot_storage_gib: null,
  max_image_storage_gib: null,
};

const UNPRICED: Prices = {
  subscription_price_cents: null,
  usage_vcpu_hour_usd: null,
  usage_memory_gib_hour_usd: null,
  usage_disk_gib_hour_usd: null,
  usage_storage_gib_month_usd: null,
  usage_snapshot_storage_gib_month_usd: null,
};

/** The plan where the operator configured none: no limits and no prices. */
export const SELF_HOSTED_PLAN: BillingPlan = {
  name: 'self_hosted',
  display_name: 'Self-hosted',
  description: 'Limited by the hardware alone',
  ...UNLIMITED,
  ...UNPRICED,
  self_serve: false,
  is_default: true,
  trial_duration_days: null,
};
