import { SELF_HOSTED_PLAN, type BillingPlan } from '@svc/contract/rest';
import type { Database } from './database.ts';
import { inTransaction } from './in-transaction.ts';
import { prepareStatement } from './prepare-statement.ts';

/**
 * Replaces the plans of this server. They are stored so that every server on the store and the CLI use the same ones;
 * a server that is started without plans does not change them.
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

/** Plans in the operator's order. If none of them is the default, the built-in plan is, and comes last. */
export async function listPlans(db: Database): Promise<readonly BillingPlan[]> {
  const { rows } = await selectPlans(db, {});
  // Only `putPlans` writes here, after validation.
  const plans = rows.map(({ document }) => JSON.parse(document) as BillingPlan);
  return plans.some((plan) => plan.is_default) ? plans : [...plans, SELF_HOSTED_PLAN];
}

const selectPlans = prepareStatement([], (db) =>
  db.selectFrom('plans').select('document').orderBy('position'),
);

/** The plan of this name, or the default when there is none (any more). */
export function choosePlan(plans: readonly BillingPlan[], name: string): BillingPlan {
  const isDefault = (plan: BillingPlan) => plan.is_default;
  return plans.find((plan) => plan.name === name) ?? plans.find(isDefault) ?? SELF_HOSTED_PLAN;
}
