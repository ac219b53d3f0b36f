import { PlatformError } from '@svc/contract';
import { LIMIT_NAMES, type LimitName } from '@svc/contract/rest';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { appendEvent, type Actor } from '../store/events.ts';
import { listPlans } from '../store/plans.ts';
import { readOwnLimits, updateTerms } from '../store/quotas.ts';

/** A number, null for no limit, or `plan` for what the plan says. `plan` and `is_suspended` can be set as well. */
export type QuotaChanges = Readonly<Record<string, unknown>>;

const OPERATOR: Actor = { kind: 'system', code: 'operator', label: 'operator of this server' };

/**
 * Changes limits of an organization; fields that are not named keep their values. Running sandboxes are left alone.
 * @throws PlatformError `invalid_request` naming the field, `org_not_found`
 */
export async function setQuotas(
  db: Database,
  organizationId: string,
  changes: QuotaChanges,
  { actor = OPERATOR, requestId = null, sourceAddress = null }: Partial<Origin> = {},
): Promise<void> {
  for (const [name, value] of Object.entries(changes)) checkChange(name, value);
  const { plan, is_suspended: isSuspended, ...limits } = changes;
  if (typeof plan === 'string') await requirePlan(db, plan);
  const apply = async (transaction: Database) => {
    // Comes first, because it takes the lock: what is read below cannot change any more.
    await appendEvent(transaction, {
      organizationId,
      type: 'quota_changed',
      category: 'quota',
      actor,
      payload: changes,
      requestId,
      sourceAddress,
    });
    await updateTerms(transaction, organizationId, {
      quotas: merge(await readOwnLimits(transaction, organizationId), limits),
      ...(typeof plan === 'string' ? { plan } : {}),
      ...(isSuspended === undefined ? {} : { isSuspended: isSuspended === true }),
    });
  };
  await (db.isTransaction ? apply(db) : inTransaction(db, apply));
}

/** The actor of the change, for the audit event. */
export interface Origin {
  readonly actor: Actor;
  readonly requestId: string | null;
  readonly sourceAddress: string | null;
}

function checkChange(name: string, value: unknown): void {
  if (name === 'plan') {
    if (typeof value !== 'string') throw badChange(name, 'must be the name of a plan');
  } else if (name === 'is_suspended') {
    if (typeof value !== 'boolean') throw badChange(name, 'must be true or false');
  } else if (!isLimitName(name)) {
    throw badChange(name, `is no limit; there are ${LIMIT_NAMES.join(', ')}, plan and is_suspended`);
  } else if (value !== null && value !== 'plan' && !isAmount(value)) {
    throw badChange(name, "must be a whole number, null for no limit, or 'plan' for what the plan says");
  }
}

function isLimitName(name: string): name is LimitName {
  return (LIMIT_NAMES as readonly string[]).includes(name);
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

async function requirePlan(db: Database, name: string): Promise<void> {
  const plans = await listPlans(db);
  if (plans.some((plan) => plan.name === name)) return;
  throw badChange('plan', `must be one of ${plans.map((plan) => plan.name).join(', ')}`);
}

function merge(own: QuotaChanges, changes: QuotaChanges): QuotaChanges {
  return Object.fromEntries(Object.entries({ ...own, ...changes }).filter(([, value]) => value !== 'plan'));
}

function badChange(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field} ${reason}`, { details: { field, reason } });
}
