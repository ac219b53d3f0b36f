import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, nullable, Timestamp, TimestampInput } from './fields.ts';
import { BillingPlan, Prices } from './plan-fields.ts';
import type { RestOperation } from './rest-operation.ts';
import { SandboxUsage, StorageUsage, UsageSummary } from './usage-fields.ts';

/** `from` must lie before `to`; the handler says so in words. */
const WINDOW_QUERY = strictObject({
  from: Type.Optional(TimestampInput),
  to: Type.Optional(TimestampInput),
});

const BillingSummary = strictObject({
  plan: strictObject({
    name: Type.String(),
    display_name: Type.String(),
    has_custom_billing_terms: Type.Boolean({ description: 'Some limits are not those of the plan' }),
  }),
  effective_pricing: Prices,
  effective_state: Type.Enum(['free', 'active', 'past_due', 'suspended']),
  is_suspended: Type.Boolean(),
  available_credit_cents: nullable(Type.Integer()),
  billing_terms_override: Type.Null(),
  checkout_url: nullable(Type.String()),
  current_period_ends_at: Timestamp,
  pending_plan: nullable(Type.String()),
});

const Invoice = strictObject({
  id: Type.String(),
  status: Type.String(),
  total_cents: Type.Integer(),
  currency: Type.String(),
  period_start: Timestamp,
  period_end: Timestamp,
  created_at: Timestamp,
  invoice_url: nullable(Type.String()),
});

const READ = {
  tag: 'billing',
  method: 'GET',
  audience: 'both',
  role: 'member',
  params: NO_FIELDS,
  query: NO_FIELDS,
  headers: NO_FIELDS,
  body: null,
  status: 200,
  errors: [],
} as const;

export const billingOperations = {
  'billing.get': {
    ...READ,
    summary: 'The plan of the organization and what it costs',
    path: '/billing',
    output: BillingSummary,
  },
  'billing.listPlans': {
    ...READ,
    summary: 'The plans of this server',
    path: '/billing/plans',
    output: Type.Array(BillingPlan),
  },
  'billing.choosePlan': {
    ...READ,
    summary: 'Change the plan to one that owners may choose themselves',
    method: 'PUT',
    path: '/orgs/{slug}/billing/plan',
    audience: 'user',
    role: 'owner',
    body: strictObject({ plan: Type.String({ minLength: 1, maxLength: 63 }) }),
    output: BillingSummary,
    errors: ['forbidden'],
  },
  'billing.listInvoices': {
    ...READ,
    summary: 'Invoices; this server writes none',
    path: '/billing/invoices',
    output: Type.Array(Invoice),
  },
  'billing.getInvoice': {
    ...READ,
    summary: 'Get an invoice',
    path: '/billing/invoices/{invoice_id}',
    params: strictObject({ invoice_id: Type.String({ minLength: 1, maxLength: 256 }) }),
    output: Invoice,
    errors: ['not_found'],
  },
  'billing.getUsage': {
    ...READ,
    summary: 'Usage of the current month and an estimate of what it costs',
    path: '/billing/usage',
    output: UsageSummary,
  },
  'billing.getSandboxUsage': {
    ...READ,
    summary: 'Usage by sandbox and day, from the start of the month until now unless told otherwise',
    path: '/billing/usage/sandbox',
    query: WINDOW_QUERY,
    output: SandboxUsage,
  },
  'billing.getStorageUsage': {
    ...READ,
    summary: 'Usage by volume and day, from the start of the month until now unless told otherwise',
    path: '/billing/usage/storage',
    query: WINDOW_QUERY,
    output: StorageUsage,
  },
} as const satisfies Record<string, RestOperation>;
