import { compile, type Validator } from '../schema/compile.ts';
import { BillingPlan, SELF_HOSTED_PLAN } from './plan-fields.ts';

/**
 * Reads the plan file of an operator: `{"plans": [{"name": …}, …]}`, where everything but the name may be left out.
 * `problems` lists every mistake; `plans` is empty when there is one.
 */
export function readPlanFile(value: unknown): {
  readonly plans: readonly BillingPlan[];
  readonly problems: readonly string[];
} {
  const { plans: given, ...others } = isObject(value) ? value : {};
  if (!Array.isArray(given) || given.length === 0) {
    return { plans: [], problems: ['the file must be an object with a list of plans'] };
  }
  const wrong = [
    ...Object.keys(others).map((name) => `${name} is not a known field`),
    ...findFieldProblems(given),
  ];
  if (wrong.length > 0) return { plans: [], problems: wrong };
  // Every field was checked above.
  const plans = given.map((plan) => complete(plan as Pick<BillingPlan, 'name'>));
  const problems = findContradictions(plans);
  return { plans: problems.length === 0 ? plans : [], problems };
}

/** Checks field by field, because a validator of the whole stops after a few problems. */
function findFieldProblems(plans: readonly unknown[]): readonly string[] {
  const validators = new Map(
    Object.entries(BillingPlan.properties).map(([name, schema]): [string, Validator] => [
      name,
      compile(schema),
    ]),
  );
  return plans.flatMap((plan, index) => {
    if (!isObject(plan)) return [`plans[${index}] must be an object`];
    if (!Object.hasOwn(plan, 'name')) return [`plans[${index}].name is required`];
    return Object.entries(plan).flatMap(([name, value]) => {
      const reason = findReason(validators.get(name), value);
      return reason === null ? [] : [`plans[${index}].${name} ${reason}`];
    });
  });
}

function findReason(validator: Validator | undefined, value: unknown): string | null {
  if (validator === undefined) return 'is not a known field';
  if (validator.check(value)) return null;
  return validator.errors(value)[0]?.message ?? 'is not valid';
}

function complete(plan: Partial<BillingPlan> & Pick<BillingPlan, 'name'>): BillingPlan {
  const { name } = plan;
  return { ...SELF_HOSTED_PLAN, display_name: name, description: null, is_default: false, ...plan };
}

function findContradictions(plans: readonly BillingPlan[]): readonly string[] {
  const names = plans.map(({ name }) => name);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  const defaults = plans.filter((plan) => plan.is_default).map(({ name }) => name);
  return [
    ...[...new Set(twice)].map((name) => `plan ${name} is there more than once`),
    ...(defaults.length > 1 ? [`only one plan can have is_default, not ${defaults.join(', ')}`] : []),
  ];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
