import { SELF_HOSTED_PLAN, type BillingPlan } from '@svc/contract/rest';
import type { Database } from './database.ts';
import { inTransaction } from './in-transaction.ts';
import { prepareStatement } from './prepare-statement.ts';

/**
 * Replaces the plans of this server. They are kept in the store, so that every server on it and the command line see the
 * same ones; a server that was started without plans leaves them as they are.
 */
export async function putPlans(db: Database, plans: readonly BillingPlan[]): Promise<void> {
  const rows = plans.map((plan, position) => ({
    name: plan.name,
    position,
    document: JSON.stringify(plan),
  }));
  await inTransaction(db, async (transaction) => {
    await transaction.deleteFrom('plans').execute();
    await transaction.insertInto('plans').values(rows).execute();
  });
}

/** In the operator's order. Where none of them is the default, the built-in plan is, and stands last. */
export async function listPlans(db: Database): Promise<readonly BillingPlan[]> {
  const { rows } = await selectPlans(db, {});
  // Only `putPlans` writes here, and what it is given was checked.
  const plans = rows.map(({ document }) => JSON.parse(document) as BillingPlan);
  return plans.some((plan) => plan.is_default) ? plans : [...plans, SELF_HOSTED_PLAN];
}

const selectPlans = prepareStatement([], (db) =>
  db.selectFrom('plans').select('document').orderBy('position'),
);

/** The plan of this name, or the default when it is not there (any more). */
export function choosePlan(plans: readonly BillingPlan[], name: string): BillingPlan {
  const isDefault = (plan: BillingPlan) => plan.is_default;
  return plans.find((plan) => plan.name === name) ?? plans.find(isDefault) ?? SELF_HOSTED_PLAN;
}
